"""Why a gang waits, in the words of KAI and Volcano: their statuses on their own CRDs, as they write them."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.resource import Resource
from grove.operator.caches.registry import external_resource
from grove.schedulers import kai, volcano
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import clique, workload

OF_KAI, OF_VOLCANO = external_resource(kai.POD_GROUP), external_resource(volcano.POD_GROUP)
AT = "2026-01-01T00:00:00Z"
ENDLESS = 30


def from_kai(words: str) -> dict[str, Any]:
    said = {
        "type": "UnschedulableOnNodePool",
        "nodePool": "default",
        "reason": "Unschedulable",
        "message": f"[{{PodSchedulingErrors {words} <nil>}}]",
        "transitionID": "1",
        "lastTransitionTime": AT,
        "status": "True",
        "reasons": [{"reason": "PodSchedulingErrors", "message": words}],
    }
    return {"schedulingConditions": [said], "resourcesStatus": {"requested": {"cpu": "1"}}}


def from_volcano(words: str) -> dict[str, Any]:
    said = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": words,
        "transitionID": "5f1c",
        "lastTransitionTime": AT,
    }
    return {"phase": "Inqueue", "conditions": [said]}


def words_on(world: World, gang: str) -> str:
    found = world.find(GANGS, gang)
    facts = (found.status.get("conditions") or ()) if found else ()
    return next((fact["message"] for fact in facts if fact["type"] == "Scheduled"), "")


def told_again(recorder: Recorder) -> int:
    return sum(
        call.took_effect and call.request.path.partition("?")[0].endswith("/podgangs/wl-0/status")
        for call in recorder.calls
    )


@pytest.mark.parametrize(
    ("name", "groups", "subresource", "status"),
    [("kai-scheduler", OF_KAI, "status", from_kai), ("volcano", OF_VOLCANO, "", from_volcano)],
    ids=["kai", "volcano"],
)
async def test_scheduler_message_is_copied_at_a_limited_rate(
    world: World, name: str, groups: Resource, subresource: str, status: Any
) -> None:
    body = workload("wl", clique("a", 2, pod={"schedulerName": name}))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    waits = "Too few pods scheduled in wl-0-a"
    in_use = backends(Scheduler((SchedulerProfile(name),)))

    async def say(words: str) -> None:
        await world.patch(groups, "wl-0", {"status": status(words)}, subresource=subresource)

    async with operating(world, backends=in_use) as operator:
        await world.create(SETS, body)
        await world.until(lambda: words_on(world, "wl-0") == waits, "that it waits")
        await say("no nodes with enough resources:\n 0/8 GPUs")
        line = f"{waits}; {name} says: no nodes with enough resources: 0/8 GPUs"
        await world.until(lambda: words_on(world, "wl-0") == line, "why it waits")
        before = told_again(operator.recorder)
        for number in range(1, ENDLESS + 1):
            await say(f"no nodes with enough resources: {number}/80 GPUs")
        latest = f"{waits}; {name} says: no nodes with enough resources: {ENDLESS}/80 GPUs"
        await world.until(lambda: words_on(world, "wl-0") == latest, "what it says in the end")
        assert told_again(operator.recorder) - before < ENDLESS / 2
        assert world.get(groups, "wl-0").status == status(
            f"no nodes with enough resources: {ENDLESS}/80 GPUs"
        )
