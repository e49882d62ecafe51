"""Fabric domains: created for replicas, shared by sets, deleted after the last pods that need them.

Kubernetes creates the claims of pods, and its scheduler chooses nodes, which differs from run to run: the
checkpoints have conditions of their own instead of snapshots.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, automatic, named
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS


def domains_ready(world: World, pods: int, owners: dict[str, set[str]]) -> Callable[[], bool]:
    """Whether all is ready with so many pods, and exactly these domains exist, each owned by these sets."""

    def holds() -> bool:
        names = {found.uid: found.name for found in world.all(SETS)}
        found = {one.name: {names.get(uid, "?") for uid in one.owners} for one in world.all(DOMAINS)}
        return found == owners and len(world.pods()) == pods and world.all_ready()

    return holds


async def domains_created_shared_deleted(world: World) -> None:
    """Two sets need the same domain at the same time: one creates it, and both become its owners."""
    async with fabric.driver_installed(world):
        await world.create(SETS, automatic("app", replicas=2))
        await world.create(SETS, named("one", "team"))
        await world.create(SETS, named("two", "team"))
        team = {"one", "two"}
        created = domains_ready(world, 4, {"app-0": {"app"}, "app-1": {"app"}, "team": team})
        await world.checkpoint("created", when=created, compared=False)
        await world.stop_comparing_deletes()
        await world.scale(SETS, "app", 1)
        await world.delete(SETS, "one")
        fewer = domains_ready(world, 2, {"app-0": {"app"}, "team": {"two"}})
        await world.checkpoint("scaled in", when=fewer, compared=False)
        await world.delete(SETS, "app")
        await world.delete(SETS, "two")
        await world.checkpoint(
            "deleted", when=lambda: not world.all(SETS) and not world.all(DOMAINS), compared=False
        )


domains_created_shared_deleted.options = {"fabrics": fabric.NVIDIA}  # type: ignore[attr-defined]

SCENARIOS = {"domains created, shared, deleted": domains_created_shared_deleted}
