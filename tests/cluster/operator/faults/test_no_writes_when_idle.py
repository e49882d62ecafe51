"""Nothing to do means nothing asked: a world at rest costs no calls, and neither does a restart."""

from __future__ import annotations

import asyncio

from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import small, upstream

LOOK = 5.0
"""Seconds of real time: silence can only be heard by listening."""


async def test_a_world_at_rest_and_a_restart_cost_no_calls(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.create(SETS, small(replicas=2))
        await world.until_ready()
        await operator.recorder.silence()
        before = len(operator.recorder.calls)
        await asyncio.sleep(LOOK)
        assert operator.recorder.calls[before:] == []

    async with operating(world) as another:
        await another.recorder.silence(LOOK)
        assert another.recorder.calls == [], "lists come by watches, and there is nothing to write"


async def test_coming_to_rest_takes_few_calls(world: World) -> None:
    """Made, bound, running, ready: each pod is created once, and statuses are told together."""
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload1"))
        await world.until_ready()
        await operator.recorder.silence()
        writes = operator.recorder.writes()
        assert not [str(call) for call in writes if call.status >= 300]
        assert sum(call.request.verb == "create" for call in writes) == 1 + 1 + 5 + 1 + 10
        told = [call for call in writes if "/status" in call.request.path]
        assert len(told) <= 4 * world.changes[PODS], "a pod that changes is news for four at most"
        assert len(writes) == len(operator.recorder.calls)
