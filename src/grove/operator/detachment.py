"""Letting go of every set when the operator leaves for good.

Nobody else takes off its finalizer: a set that is deleted later would hang for ever. The pods, and all else
that a set has, stay as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from grove.api import marks
from grove.api.sets import PodCliqueSet
from grove.kube.client import Client, Object
from grove.kube.errors import Conflict, KubeError, NotFound
from grove.operator.caches import resource_of

_SETS = resource_of(PodCliqueSet.KIND)
_ROUNDS = 5


async def detach(client: Client) -> AsyncIterator[str]:
    """Take the operator's finalizer off every set; yields each as `namespace/name`."""
    for _ in range(_ROUNDS):
        held = await _held(client)
        if not held:
            return
        for found in held:
            if await _release(client, found):
                yield f"{found.metadata.namespace}/{found.metadata.name}"
    raise KubeError("the finalizers of PodCliqueSets keep coming back: stop every operator first")


async def _held(client: Client) -> list[Object]:
    try:
        found = await client.list(_SETS, as_type=Object)
    except NotFound:  # no such kind, no such sets
        return []
    return [each for each in found.items if marks.SET_FINALIZER in each.metadata.finalizers]


async def _release(client: Client, found: Object) -> bool:
    meta = found.metadata
    rest = [name for name in meta.finalizers if name != marks.SET_FINALIZER]
    body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": rest}}
    try:
        await client.patch(_SETS, meta.name, body, namespace=meta.namespace, as_type=Object)
    except (Conflict, NotFound):  # changed under our hands, or gone: the next round sees
        return False
    return True
