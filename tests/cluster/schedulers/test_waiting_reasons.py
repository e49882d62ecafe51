"""Why a gang waits: messages of KAI and Volcano from statuses in their own format, on their own CRDs."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.resource import Resource
from grove.operator.caches.resources import external_resource
from grove.schedulers import kai, volcano
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import clique, workload

OF_KAI, OF_VOLCANO = external_resource(kai.POD_GROUP), external_resource(volcano.POD_GROUP)
AT = "2026-01-01T00:00:00Z"
CHANGES = 30


def from_kai(message: str) -> dict[str, Any]:
    condition = {
        "type": "UnschedulableOnNodePool",
        "nodePool": "default",
        "reason": "Unschedulable",
        "message": f"[{{PodSchedulingErrors {message} <nil>}}]",
        "transitionID": "1",
        "lastTransitionTime": AT,
        "status": "True",
        "reasons": [{"reason": "PodSchedulingErrors", "message": message}],
    }
    return {"schedulingConditions": [condition], "resourcesStatus": {"requested": {"cpu": "1"}}}


def from_volcano(message: str) -> dict[str, Any]:
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": message,
        "transitionID": "5f1c",
        "lastTransitionTime": AT,
    }
    return {"phase": "Inqueue", "conditions": [condition]}


def scheduled_message(world: World, gang: str) -> str:
    found = world.find(GANGS, gang)
    conditions = (found.status.get("conditions") or ()) if found else ()
    return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")


def status_writes(recorder: Recorder) -> int:
    return sum(
        call.took_effect and call.request.path.partition("?")[0].endswith("/podgangs/wl-0/status")
        for call in recorder.calls
    )


@pytest.mark.parametrize(
    ("name", "groups", "subresource", "status"),
    [
        pytest.param(
            "kai-scheduler",
            OF_KAI,
            "status",
            from_kai,
            marks=pytest.mark.proves("waiting-reason", scheduler="kai-scheduler"),
            id="kai",
        ),
        pytest.param(
            "volcano",
            OF_VOLCANO,
            "",
            from_volcano,
            marks=pytest.mark.proves("waiting-reason", scheduler="volcano"),
            id="volcano",
        ),
    ],
)
async def test_scheduler_message_is_copied_at_a_limited_rate(
    world: World, name: str, groups: Resource, subresource: str, status: Any
) -> None:
    body = workload("wl", clique("a", 2, pod={"schedulerName": name}))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    waits = "Too few pods scheduled in wl-0-a"
    in_use = backends(Scheduler((SchedulerProfile(name),)))

    async def report(message: str) -> None:
        await world.patch(groups, "wl-0", {"status": status(message)}, subresource=subresource)

    async with operating(world, backends=in_use) as operator:
        await world.create(SETS, body)
        await world.until(lambda: scheduled_message(world, "wl-0") == waits, "the gang to wait")
        await report("no nodes with enough resources:\n 0/8 GPUs")
        line = f"{waits}; {name} says: no nodes with enough resources: 0/8 GPUs"
        await world.until(lambda: scheduled_message(world, "wl-0") == line, "the scheduler's message")
        before = status_writes(operator.recorder)
        for number in range(1, CHANGES + 1):
            await report(f"no nodes with enough resources: {number}/80 GPUs")
        latest = f"{waits}; {name} says: no nodes with enough resources: {CHANGES}/80 GPUs"
        await world.until(lambda: scheduled_message(world, "wl-0") == latest, "the latest message")
        assert status_writes(operator.recorder) - before < CHANGES / 2
        assert world.get(groups, "wl-0").status == status(
            f"no nodes with enough resources: {CHANGES}/80 GPUs"
        )
