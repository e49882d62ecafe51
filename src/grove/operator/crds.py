"""Creates or updates CustomResourceDefinitions, whichever tool created them, for `grove crds`.

Helm creates the CRDs of a chart once and never updates them. The whole `spec` is replaced: a server-side
apply would keep fields that an earlier release declared and this one does not, because Helm is their field
manager. Only our conversion webhook stays, which the operator adds: without it, clients would get the wrong
fields until the operator adds it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.meta import ObjectMeta
from grove.dynamo.graph import mapping
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CustomResourceDefinition
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import JSON, Client, Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS
from grove.kube.discovery import served_resources
from grove.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from grove.webhooks.conversion.registration import is_ours

_MANAGER = "grove-crds"


class _Stored(Struct, frozen=True):
    metadata: ObjectMeta
    spec: dict[str, Any] = {}


class AppliedCRD(Struct, frozen=True):
    """The name of an up-to-date definition, and what was done: created, changed or unchanged."""

    name: str
    action: str


async def apply_crds(client: Client, definitions: Iterable[dict[str, Any]]) -> AsyncIterator[AppliedCRD]:
    """Create or update each definition, and wait until it is served."""
    for definition in definitions:
        applied = await _apply(client, definition)
        await _wait_until_served(client, definition)
        yield applied


async def _apply(client: Client, definition: dict[str, Any]) -> AppliedCRD:
    name = definition["metadata"]["name"]
    for _ in range(timing.CRD_ATTEMPTS):
        try:
            found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, as_type=_Stored)
        except NotFound:
            found = None
        try:
            if found is None:
                await client.create(
                    CUSTOM_RESOURCE_DEFINITIONS, definition, field_manager=_MANAGER, as_type=Object
                )
                return AppliedCRD(name, "created")
            spec = definition["spec"]
            if is_ours(conversion := mapping(found.spec.get("conversion"))):
                spec = {**spec, "conversion": conversion}
            updated = await _replace(client, name, found.metadata.resource_version, spec)
        except (AlreadyExists, Conflict):
            continue  # changed by another writer in between: read it again
        changed = updated.metadata.resource_version != found.metadata.resource_version
        return AppliedCRD(name, "changed" if changed else "unchanged")
    raise KubeError(
        f"CustomResourceDefinition {name} keeps changing: find the other writer in its managedFields"
    )


async def _replace(client: Client, name: str, version: str, spec: dict[str, Any]) -> Object:
    patch: list[dict[str, Any]] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec", "value": spec},
    ]
    return await client.patch(
        CUSTOM_RESOURCE_DEFINITIONS, name, patch, kind=JSON, field_manager=_MANAGER, as_type=Object
    )


async def _wait_until_served(client: Client, definition: dict[str, Any]) -> None:
    """Wait until the API server serves it, and kubectl finds it."""
    name = definition["metadata"]["name"]
    try:
        async with asyncio.timeout(timing.CRD_SERVED_TIMEOUT):
            await _wait_until_established(client, definition)
            await _wait_until_discovered(client, definition)
    except TimeoutError:
        raise KubeError(
            f"CustomResourceDefinition {name} is not served after "
            f"{timing.CRD_SERVED_TIMEOUT:g} s: see its conditions"
        ) from None


async def _wait_until_established(client: Client, definition: dict[str, Any]) -> None:
    """Wait for its condition. One name is watched: RBAC may allow only that name."""
    name = definition["metadata"]["name"]
    version = definition["spec"]["versions"][0]["name"]
    established = asyncio.Event()

    def on_change(_old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        if new is not None and new.serves(version):
            established.set()

    cache = Cache(CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition, fields=f"metadata.name={name}")
    cache.subscribe(on_change)
    watching = asyncio.create_task(Reflector(client, cache).run())
    try:
        await established.wait()
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _wait_until_discovered(client: Client, definition: dict[str, Any]) -> None:
    """Wait until discovery lists it, which comes after the condition and has no event to wait for.

    Until then kubectl knows of no such kind, and fails. Clusters may forbid discovery: nothing to wait for.
    """
    spec = definition["spec"]
    group, version, plural = spec["group"], spec["versions"][0]["name"], spec["names"]["plural"]
    with suppress(Forbidden):
        while plural not in await served_resources(client, group, version):  # noqa: ASYNC110
            await asyncio.sleep(timing.CRD_DISCOVERY_INTERVAL)
