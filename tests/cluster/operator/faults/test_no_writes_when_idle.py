"""An operator with nothing to do sends no requests: with ready sets, after a restart, and after a change that
has no effect."""

from __future__ import annotations

import asyncio

from grove.api.configuration.types import Scheduler
from grove.kube.client.resource import PODS
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, GROUPS, SETS
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


async def test_annotation_of_set_causes_no_call(world: World) -> None:
    """The gangs get it with the next write that they need anyway, and new gangs at once."""
    async with operating(world, backends=backends(Scheduler())) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.until_ready()
        await operator.recorder.until_quiet()
        before, name = len(operator.recorder.calls), world.names(SETS)[0]
        await world.patch(SETS, name, {"metadata": {"annotations": {"example.com/note": "1"}}})
        await operator.recorder.until_quiet()
        assert [str(call) for call in operator.recorder.calls[before:]] == []

        old, (group, *_) = set(world.names(GANGS)), world.all(GROUPS)
        await world.scale(GROUPS, group.name, group.spec["replicas"] + 1)
        await world.until_ready()
        (new,) = set(world.names(GANGS)) - old
        assert world.get(GANGS, new).metadata.annotations["example.com/note"] == "1"
        base = world.all(GANGS)[0].name
        await world.patch(GANGS, base, {"metadata": {"labels": {"grove.io/scheduler-name": None}}})
        await world.until(
            lambda: world.get(GANGS, base).metadata.annotations.get("example.com/note") == "1",
            "the next write of the gang has the annotation",
        )
