"""Several workloads at once: created, scaled out and deleted together, without effect on each other."""

from __future__ import annotations

import asyncio

from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GROUPS, SETS
from tests.cluster.operator.support.workloads import small

NAMES = tuple(f"w{number}" for number in range(6))


async def many_at_once(world: World) -> None:
    await asyncio.gather(*(world.create(SETS, small(name)) for name in NAMES))
    await world.checkpoint("created", 5 * len(NAMES))
    before = {pod.uid for pod in world.pods()}
    await asyncio.gather(*(world.scale(GROUPS, f"{name}-0-model", 3) for name in NAMES))
    await world.checkpoint("scaled out", 7 * len(NAMES))
    assert before <= {pod.uid for pod in world.pods()}
    await world.stop_comparing_deletes()
    await asyncio.gather(*(world.delete(SETS, name) for name in NAMES[1:]))
    await world.checkpoint("all but one deleted", 7)
    await world.delete(SETS, NAMES[0])
    await world.checkpoint("deleted", 0)


SCENARIOS = {"many at once": many_at_once}
