"""Upstream's topology scenarios on the real API server, with KAI's own CRDs: TAS2 to TAS6, TAS11 to TAS16."""

from __future__ import annotations

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.operator.caches.registry import external_resource
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.cluster.operator.scheduling.test_topology import topology
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.schedulers.topology_scenarios import SCENARIOS, all_told

POD_GROUPS = external_resource(POD_GROUP)
KAI = backends(Scheduler((SchedulerProfile("kai-scheduler"),)))


async def test_kai_is_told_what_the_tables_say(world: World) -> None:
    expected = {name: spec for scenario in SCENARIOS.values() for name, spec in all_told(scenario).items()}
    async with topology(world, "grove-topology"), operating(world, topology_aware=True, backends=KAI):
        for scenario in SCENARIOS.values():
            await world.create(SETS, scenario.body)
        await world.until(
            lambda: set(world.names(POD_GROUPS)) == set(world.names(GANGS)) == expected.keys(),
            "all PodGroups, and the gangs that they are of",
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
            notes = pod.metadata.annotations
            assert pod.spec["schedulerName"] == "kai-scheduler"
            assert notes["kai.scheduler/skip-podgrouper"] == "true"
            assert notes["pod-group-name"] == pod.labels["grove.io/podgang"]
            assert pod.labels["kai.scheduler/subgroup-name"] == pod.labels["grove.io/podclique"]
            assert pod.labels["kai.scheduler/queue"] == "test"


async def test_a_gang_that_kai_cannot_be_told_of_says_so_in_one_event(world: World) -> None:
    body = workload("nowhere", clique("a", pod={"schedulerName": "kai-scheduler"}))

    def errors() -> str:
        return str(world.get(CLIQUES, "nowhere-0-a").status.get("lastErrors"))

    async with operating(world, topology_aware=True, backends=KAI) as operator:
        await world.create(SETS, body)
        await world.until(lambda: world.find(CLIQUES, "nowhere-0-a") and "queue" in errors(), "why it waits")
        await operator.recorder.until_quiet()
        (complaint,) = operator.recorder.warnings()
        assert "needs a queue" in complaint
        await world.patch(SETS, "nowhere", {"metadata": {"labels": {"kai.scheduler/queue": "test"}}})
        await world.until(lambda: world.names(POD_GROUPS) == ["nowhere-0"], "what KAI is told then")
