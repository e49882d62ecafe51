"""A namespace is left empty, whatever its operators were doing when they ended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import NotFound
from tests.cluster.operator.support.objects import PARTS, SETS, AnyObject

if TYPE_CHECKING:
    from tests.cluster.operator.support.world import World

KINDS = (SETS, *PARTS)


async def clear(world: World) -> None:
    """Remove everything without the help of an operator, also what comes late: what one had under way when it
    ended may still be done, and what it did may not be seen yet."""
    seen_to = {(one.uid, False) for _, one in _left(world)}
    for kind in KINDS:
        await world.client.delete_collection(kind, namespace=world.namespace, labels="", grace_seconds=0)

    def late() -> list[tuple[Resource, AnyObject]]:
        return [(kind, one) for kind, one in _left(world) if (one.uid, _held(kind, one)) not in seen_to]

    while _left(world):
        for kind, one in late():
            seen_to.add((one.uid, _held(kind, one)))
            await _remove(world, kind, one)
        await world.until(lambda: late() or not _left(world), "an empty namespace")


def _left(world: World) -> list[tuple[Resource, AnyObject]]:
    return [(kind, one) for kind in KINDS for one in world.all(kind)]


def _held(kind: Resource, one: AnyObject) -> bool:
    """Whether it waits for an operator, or for who put a finalizer on it."""
    return kind in (SETS, PODS) and bool(one.metadata.finalizers)


async def _remove(world: World, kind: Resource, one: AnyObject) -> None:
    with suppress(NotFound):
        if _held(kind, one):
            await world.patch(kind, one.name, {"metadata": {"finalizers": None}})
        await world.delete(kind, one.name, grace_seconds=0)
