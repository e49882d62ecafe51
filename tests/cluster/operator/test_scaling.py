"""Scaling at three levels: out, in, to zero and back; what is scaled in leaves nothing behind."""

from __future__ import annotations

import pytest

from grove.kube.errors import Invalid
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import CLIQUES, SETS
from tests.cluster.operator.workloads import clique, workload


async def test_a_count_between_zero_and_the_minimum_is_refused_at_the_door(world: World) -> None:
    async with operating(world):
        await world.create(SETS, workload("firm", clique("worker", 3, 2)))
        await world.until_whole()
        with pytest.raises(Invalid):
            await world.scale(CLIQUES, "firm-0-worker", 1)
    assert len(world.pods()) == 3
