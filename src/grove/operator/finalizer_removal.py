"""Removes the operator's finalizer from every set when the operator is uninstalled.

No other component removes it: a set that is deleted afterwards would terminate for ever. The pods and all
other objects of a set are kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from grove import timing
from grove.api.naming import well_known
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.client.client import Client, Object
from grove.kube.errors import Conflict, KubeError, NotFound
from grove.operator.caches.resources import resource_of

_SETS = resource_of(PodCliqueSet.KIND)


async def remove_finalizers(client: Client) -> AsyncIterator[str]:
    """Remove the operator's finalizer from every set; yields each set as `namespace/name`."""
    for _ in range(timing.FINALIZER_ATTEMPTS):
        sets = await _sets_with_finalizer(client)
        if not sets:
            return
        for found in sets:
            if await _remove_finalizer(client, found):
                yield f"{found.metadata.namespace}/{found.metadata.name}"
    raise KubeError("the finalizers of PodCliqueSets are added again: stop every operator first")


async def _sets_with_finalizer(client: Client) -> list[Object]:
    try:
        found = await client.list(_SETS, as_type=Object)
    except NotFound:  # the kind is not served, so there are no sets
        return []
    return [each for each in found.items if well_known.SET_FINALIZER in each.metadata.finalizers]


async def _remove_finalizer(client: Client, found: Object) -> bool:
    meta = found.metadata
    rest = [name for name in meta.finalizers if name != well_known.SET_FINALIZER]
    body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": rest}}
    try:
        await client.patch(_SETS, meta.name, body, namespace=meta.namespace, as_type=Object)
    except (Conflict, NotFound):  # changed in between, or gone: the next attempt lists again
        return False
    return True
