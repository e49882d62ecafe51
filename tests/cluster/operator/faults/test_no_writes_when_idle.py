"""An operator with nothing to do sends no requests, neither with ready sets nor after a restart."""

from __future__ import annotations

import asyncio

from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import small, upstream

IDLE_SECONDS = 5.0
"""Seconds in which no request may be sent."""


async def test_ready_sets_and_restart_cause_no_calls(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.create(SETS, small(replicas=2))
        await world.until_ready()
        await operator.recorder.until_quiet()
        before = len(operator.recorder.calls)
        await asyncio.sleep(IDLE_SECONDS)
        assert operator.recorder.calls[before:] == []

    async with operating(world) as another:
        await another.recorder.until_quiet(IDLE_SECONDS)
        assert another.recorder.calls == [], "no write, and lists are part of the watches"


async def test_new_set_becomes_ready_with_few_calls(world: World) -> None:
    """Each pod is created once, and status updates are merged."""
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload1"))
        await world.until_ready()
        await operator.recorder.until_quiet()
        writes = operator.recorder.writes()
        assert not [str(call) for call in writes if call.status >= 300]
        assert sum(call.request.verb == "create" for call in writes) == 1 + 1 + 5 + 1 + 10
        status_updates = [call for call in writes if "/status" in call.request.path]
        assert len(status_updates) <= 4 * world.changes[PODS], (
            "a change of a pod updates at most four statuses"
        )
        assert len(writes) == len(operator.recorder.calls)
