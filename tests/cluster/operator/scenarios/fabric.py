"""Fabric domains: made for replicas, shared by sets, gone after the last pods that need them.

Kubernetes makes the pods' claims, and its scheduler chooses nodes: the rests say what counts, and are not
pictured.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, automatic, named
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS


def standing(world: World, pods: int, owners: dict[str, set[str]]) -> Callable[[], bool]:
    """All is ready with so many pods, and there are these domains, each with these sets as its owners."""

    def is_so() -> bool:
        names = {found.uid: found.name for found in world.all(SETS)}
        found = {one.name: {names.get(uid, "?") for uid in one.owners} for one in world.all(DOMAINS)}
        return found == owners and len(world.pods()) == pods and world.whole()

    return is_so


async def domains_come_and_go(world: World) -> None:
    """Two sets may make the same domain at once: one of them does, and the other joins."""
    async with fabric.present(world):
        await world.create(SETS, automatic("app", replicas=2))
        await world.create(SETS, named("one", "team"))
        await world.create(SETS, named("two", "team"))
        team = {"one", "two"}
        made = standing(world, 4, {"app-0": {"app"}, "app-1": {"app"}, "team": team})
        await world.rest("made", when=made, compared=False)
        await world.parent_goes()
        await world.scale(SETS, "app", 1)
        await world.delete(SETS, "one")
        fewer = standing(world, 2, {"app-0": {"app"}, "team": {"two"}})
        await world.rest("fewer", when=fewer, compared=False)
        await world.delete(SETS, "app")
        await world.delete(SETS, "two")
        await world.rest("gone", when=lambda: not world.all(SETS) and not world.all(DOMAINS), compared=False)


domains_come_and_go.options = {"fabrics": fabric.NVIDIA}  # type: ignore[attr-defined]

SCENARIOS = {"domains come and go": domains_come_and_go}
