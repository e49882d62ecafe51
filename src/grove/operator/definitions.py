"""Bringing CustomResourceDefinitions up to date, whoever made them and however.

Helm makes those of a chart once and never looks at them again. The whole `spec` is replaced: an apply would
leave standing what an earlier release declared and this one does not, as Helm is on record as its manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec import Struct

from grove.kube.arrivals import Definition
from grove.kube.cache import Cache
from grove.kube.client import JSON, Client, Object
from grove.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from grove.kube.reflector import Reflector
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

_MANAGER = "grove-crds"
_TRIES = 5
_PATIENCE = 60.0  # seconds until a definition is served; a moment on any API server that is well


class Brought(Struct, frozen=True):
    """One definition, now as it should be, and what was done to it."""

    name: str
    deed: str


async def bring_up_to_date(client: Client, definitions: Iterable[dict[str, Any]]) -> AsyncIterator[Brought]:
    """Make or mend each definition, and wait until it is served."""
    for definition in definitions:
        brought = await _bring(client, definition)
        await _served(client, definition)
        yield brought


async def _bring(client: Client, definition: dict[str, Any]) -> Brought:
    name = definition["metadata"]["name"]
    for _ in range(_TRIES):
        try:
            found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, as_type=Object)
        except NotFound:
            found = None
        try:
            if found is None:
                await client.create(
                    CUSTOM_RESOURCE_DEFINITIONS, definition, field_manager=_MANAGER, as_type=Object
                )
                return Brought(name, "created")
            mended = await _replace(client, name, found.metadata.resource_version, definition["spec"])
        except (AlreadyExists, Conflict):
            continue  # somebody else is at it: see what they made of it
        changed = mended.metadata.resource_version != found.metadata.resource_version
        return Brought(name, "changed" if changed else "unchanged")
    raise KubeError(f"CustomResourceDefinition {name} keeps changing: see who else writes it")


async def _replace(client: Client, name: str, version: str, spec: dict[str, Any]) -> Object:
    patch: list[dict[str, Any]] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec", "value": spec},
    ]
    return await client.patch(
        CUSTOM_RESOURCE_DEFINITIONS, name, patch, kind=JSON, field_manager=_MANAGER, as_type=Object
    )


async def _served(client: Client, definition: dict[str, Any]) -> None:
    """Wait until the API server says so. One name is watched: the right to do so may be for it alone."""
    name = definition["metadata"]["name"]
    version = definition["spec"]["versions"][0]["name"]
    served = asyncio.Event()

    def look(_old: Definition | None, new: Definition | None) -> None:
        if new is not None and new.serves(version):
            served.set()

    cache = Cache(CUSTOM_RESOURCE_DEFINITIONS, Definition, fields=f"metadata.name={name}")
    cache.subscribe(look)
    watching = asyncio.create_task(Reflector(client, cache).run())
    try:
        async with asyncio.timeout(_PATIENCE):
            await served.wait()
    except TimeoutError:
        raise KubeError(
            f"CustomResourceDefinition {name} is not served after {_PATIENCE:g} s: see its conditions"
        ) from None
    finally:
        watching.cancel()
        await asyncio.wait({watching})
