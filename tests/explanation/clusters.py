"""Small clusters as the solver reads them: racks of nodes with 8 GPUs, and pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grove.explanation.model import ObjectRef
from grove.explanation.remedies.ended_pods import UsedBy
from grove.topology.placement.answers import NoFit
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Node, NodeUse, Partition, Pod, PodShape, Problem, Taint, Unit
from grove.topology.placement.solve import solve

LEVELS = ("topology/zone", "topology/rack")
GPU = "nvidia.com/gpu"


def a_node(name: str, rack: str = "r1", *, taint: str = "", **state: Any) -> Node:
    """A node of 8 GPUs in zone z."""
    taints = (Taint(taint),) if taint else ()
    labels = {"topology/zone": "z", "topology/rack": rack, "kubernetes.io/hostname": name}
    return Node(name, labels, {GPU: 8, "pods": 100}, taints, **state)


def a_user(name: str, gpus: int, priority: int = 0, gang: str = "", **more: bool) -> UsedBy:
    """A pod of namespace ml."""
    return UsedBy(ObjectRef("Pod", name, "ml"), priority, {GPU: gpus, "pods": 1}, gang, **more)


class Cluster:
    """Nodes with the pods on them."""

    def __init__(self, nodes: Iterable[Node], pods: Mapping[str, list[UsedBy]] | None = None) -> None:
        self._pods = dict(pods or {})
        use = {}
        for node, users in self._pods.items():
            by_priority: dict[int, dict[str, int]] = {}
            for each in users:
                used = by_priority.setdefault(each.priority, {})
                for resource, amount in each.requests.items():
                    used[resource] = used.get(resource, 0) + amount
            use[node] = NodeUse(by_priority)
        self.index = ClusterIndex(LEVELS, nodes, use)

    def pods_on(self, node: str) -> list[UsedBy]:
        return self._pods.get(node, [])

    def refused(self, problem: Problem) -> NoFit:
        answer = solve(self.index, problem)
        assert isinstance(answer, NoFit)
        return answer


def a_gang(
    pods: int, gpus: int = 8, required: str = "topology/rack", partitions: tuple[Partition, ...] = ()
) -> Problem:
    """A gang of equal pods in one rack, all of them in each of the partitions."""
    shape = PodShape({GPU: gpus, "pods": 1}, partitions=tuple(range(len(partitions))))
    members = tuple(Pod(f"worker/{i}", shape) for i in range(pods))
    unit = Unit("demo-0", required, parts=(Unit("worker", pods=members),))
    return Problem(unit, partitions=partitions)
