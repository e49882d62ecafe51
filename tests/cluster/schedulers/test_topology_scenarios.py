"""Upstream's topology scenarios on the real API server, with KAI's own CRDs: TAS2 to TAS6, TAS11 to TAS16."""

from __future__ import annotations

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.event_reasons import EventReason
from grove.operator.caches.resources import external_resource
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.cluster.operator.scheduling.test_topology import topology
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.schedulers.topology_scenarios import SCENARIOS, all_pod_groups

POD_GROUPS = external_resource(POD_GROUP)
KAI = backends(Scheduler((SchedulerProfile("kai-scheduler"),)))


@pytest.mark.proves("gang", scheduler="kai-scheduler")
@pytest.mark.proves("required-gang", scheduler="kai-scheduler")
@pytest.mark.proves("required-nested", scheduler="kai-scheduler")
async def test_kai_pod_groups_match_the_scenarios(world: World) -> None:
    expected = {
        name: spec for scenario in SCENARIOS.values() for name, spec in all_pod_groups(scenario).items()
    }
    async with topology(world, "grove-topology"), operating(world, topology_aware=True, backends=KAI):
        for scenario in SCENARIOS.values():
            await world.create(SETS, scenario.body)
        await world.until(
            lambda: set(world.names(POD_GROUPS)) == set(world.names(GANGS)) == expected.keys(),
            "all PodGroups and PodGangs",
        )
        assert {group.name: group.spec for group in world.all(POD_GROUPS)} == expected
        for group in world.all(POD_GROUPS):
            gang = world.get(GANGS, group.name)
            assert group.owners == (gang.uid,)
            assert gang.labels.items() <= group.labels.items()
            assert gang.metadata.annotations.items() <= group.metadata.annotations.items()
        pods = sum(spec["minMember"] for spec in expected.values())
        await world.until(lambda: len(world.pods()) == pods, "all pods")
        for pod in world.pods():
            annotations = pod.metadata.annotations
            assert pod.spec["schedulerName"] == "kai-scheduler"
            assert annotations["kai.scheduler/skip-podgrouper"] == "true"
            assert annotations["pod-group-name"] == pod.labels["grove.io/podgang"]
            assert pod.labels["kai.scheduler/subgroup-name"] == pod.labels["grove.io/podclique"]
            assert pod.labels["kai.scheduler/queue"] == "test"


@pytest.mark.proves("queues", scheduler="kai-scheduler")
async def test_gang_without_queue_gets_one_event(world: World) -> None:
    body = workload("nowhere", clique("a", pod={"schedulerName": "kai-scheduler"}))

    def errors() -> str:
        return str(world.get(CLIQUES, "nowhere-0-a").status.get("lastErrors"))

    async with operating(world, topology_aware=True, backends=KAI) as operator:
        await world.create(SETS, body)
        await world.until(
            lambda: world.find(CLIQUES, "nowhere-0-a") and "queue" in errors(), "the error on the clique"
        )
        await operator.recorder.until_quiet()
        (warning,) = operator.recorder.warnings(EventReason.KAI_MAPPING_FAILED)
        assert "needs a queue" in warning
        await world.patch(SETS, "nowhere", {"metadata": {"labels": {"kai.scheduler/queue": "test"}}})
        await world.until(lambda: world.names(POD_GROUPS) == ["nowhere-0"], "the PodGroup")
