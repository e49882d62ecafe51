"""Reads which resources the API server serves."""

from __future__ import annotations

from msgspec import Struct, json

from grove.kube.client.client import Client
from grove.kube.errors import NotFound


class _APIResource(Struct, frozen=True):
    name: str


class _APIResourceList(Struct, frozen=True):
    resources: tuple[_APIResource, ...] | None = None


async def served_resources(client: Client, group: str, version: str) -> set[str]:
    """The plural names of the resources of a version of an API group; none if it is not served."""
    try:
        reply = await client.raw("GET", f"/apis/{group}/{version}")
    except NotFound:
        return set()
    return {each.name for each in json.decode(reply.body, type=_APIResourceList).resources or ()}
