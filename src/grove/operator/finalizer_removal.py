"""Removes the operator's finalizers from sets and fabric domains when the operator is uninstalled.

No other component removes them: what is deleted afterwards would terminate for ever, and with it its
namespace. The objects themselves are kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from grove import timing
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import Resource
from grove.kube.errors import Conflict, KubeError, NotFound


async def remove_finalizers(
    client: Client, resource: Resource, finalizer: str, namespace: str | None = None
) -> AsyncIterator[str]:
    """Remove a finalizer from every object of a kind, of one namespace if one is given; yields each object as
    `namespace/name`."""
    for _ in range(timing.FINALIZER_ATTEMPTS):
        found = await _objects_with(client, resource, finalizer, namespace)
        if not found:
            return
        for each in found:
            if await _remove(client, resource, each, finalizer):
                yield f"{each.metadata.namespace}/{each.metadata.name}"
    raise KubeError(f"the finalizers of {resource.kind}s are added again: stop every operator first")


async def _objects_with(
    client: Client, resource: Resource, finalizer: str, namespace: str | None
) -> list[Object]:
    try:
        found = await client.list(resource, namespace=namespace, as_type=Object)
    except NotFound:  # the kind is not served, so there are no objects
        return []
    return [each for each in found.items if finalizer in each.metadata.finalizers]


async def _remove(client: Client, resource: Resource, found: Object, finalizer: str) -> bool:
    meta = found.metadata
    rest = [name for name in meta.finalizers if name != finalizer]
    body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": rest}}
    try:
        await client.patch(resource, meta.name, body, namespace=meta.namespace, as_type=Object)
    except (Conflict, NotFound):  # changed in between, or gone: the next attempt lists again
        return False
    return True
