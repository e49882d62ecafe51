"""Empties the namespace of a test without an operator, whatever its operators were doing when they ended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import NotFound
from tests.cluster.operator.support.objects import PARTS, SETS, AnyObject
from tests.namespaces import delete_all

if TYPE_CHECKING:
    from tests.cluster.operator.support.world import World

KINDS = (SETS, *PARTS)


async def clear(world: World) -> None:
    """Delete all objects without an operator, also those that appear late: writes that were in flight when
    the operator ended may still take effect, and others may not be in the caches yet."""
    handled = {(one.uid, False) for _, one in _left(world)}
    for kind in KINDS:
        await delete_all(world.client, kind, world.namespace, grace_seconds=0)

    def late() -> list[tuple[Resource, AnyObject]]:
        return [(kind, one) for kind, one in _left(world) if (one.uid, _held(kind, one)) not in handled]

    while _left(world):
        for kind, one in late():
            handled.add((one.uid, _held(kind, one)))
            await _remove(world, kind, one)
        await world.until(lambda: late() or not _left(world), "an empty namespace")


def _left(world: World) -> list[tuple[Resource, AnyObject]]:
    return [(kind, one) for kind in KINDS for one in world.all(kind)]


def _held(kind: Resource, one: AnyObject) -> bool:
    """Whether a finalizer, of the operator or of a test, keeps the object."""
    return kind in (SETS, PODS) and bool(one.metadata.finalizers)


async def _remove(world: World, kind: Resource, one: AnyObject) -> None:
    with suppress(NotFound):
        if _held(kind, one):
            await world.patch(kind, one.name, {"metadata": {"finalizers": None}})
        await world.delete(kind, one.name, grace_seconds=0)
