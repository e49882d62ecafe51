"""Placement by an assigner: gangs are gated until they have nodes, and are scheduled to these nodes."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.placement import Assignment, GangName
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, gated
from tests.cluster.operator.support.workloads import clique, workload

HOST = "kubernetes.io/hostname"


class OneNodePerGang:
    """An assigner that gives each gang a node of its own, as long as there are nodes."""

    def __init__(self, nodes: list[str]) -> None:
        self._nodes = nodes

    def applies_to(self, workload: PodCliqueSet) -> bool:
        return True

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:
        if len(given) == len(self._nodes):
            return None
        return Assignment({f"{gang.name}-worker": {HOST: self._nodes[len(given)]}})


async def test_gangs_run_on_assigned_nodes_or_stay_gated(world: World, agents: list[str]) -> None:
    async with operating(world, assigner=OneNodePerGang(agents[:2])) as operator:
        await world.create(SETS, workload("mine", clique("worker", 2), replicas=3))
        await world.until(lambda: sum("nodeName" in pod.spec for pod in world.pods()) == 4)
        await world.until(lambda: len(world.pods()) == 6)
        await operator.recorder.until_quiet()
        nodes_of: dict[str, set[str]] = {}
        for pod in world.pods():
            nodes_of.setdefault(pod.labels[labels.GANG], set()).add(pod.spec.get("nodeName", ""))
        assert sorted(map(sorted, nodes_of.values())) == [[""], *([node] for node in sorted(agents[:2]))]
        assert [pod.labels[labels.GANG] for pod in world.pods() if gated(pod)] == [
            gang for gang, nodes in nodes_of.items() if nodes == {""} for _ in range(2)
        ]
        assert not any(HOST in pod.spec.get("nodeSelector", {}) for pod in world.pods() if gated(pod)), (
            "gated pods have no node selector"
        )
