"""Clusters and gangs for tables: nodes are `zone/rack/name`, pods ask for GPUs."""

from __future__ import annotations

from typing import Any

from grove.topology.placement.answers import NoFit, Placed, Reason
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Node, NodeUse, Pod, PodShape, Problem, Unit
from grove.topology.placement.solve import solve

LEVELS = ("zone", "rack")
GPU = "nvidia.com/gpu"


def a_node(place: str, gpus: int = 8, **more: Any) -> Node:
    zone, rack, name = place.split("/")
    labels = {"zone": zone, "rack": rack, "name": name} | more.pop("labels", {})
    labels = {key: value for key, value in labels.items() if value}
    return Node(name, labels, {"cpu": 64_000, GPU: gpus, "pods": 110}, **more)


def racks(zones: str = "a", racks_a_zone: int = 2, nodes_a_rack: int = 2) -> list[Node]:
    """Nodes of 8 GPUs: a-1-1 is the first of rack 1 in zone a."""
    return [
        a_node(f"{zone}/{rack}/{zone}-{rack}-{number}")
        for zone in zones
        for rack in range(1, racks_a_zone + 1)
        for number in range(1, nodes_a_rack + 1)
    ]


def used(gpus: int, priority: int = 0) -> NodeUse:
    return NodeUse({priority: {GPU: gpus, "pods": 1}})


def a_shape(gpus: int = 8, **more: Any) -> PodShape:
    return PodShape({"cpu": 1000, GPU: gpus, "pods": 1}, **more)


def pods(name: str, count: int, shape: PodShape | None = None, **more: Any) -> tuple[Pod, ...]:
    return tuple(Pod(f"{name}{i}", shape or a_shape(), **more) for i in range(count))


def a_gang(count: int = 2, required: str = "", preferred: str = "", shape: PodShape | None = None) -> Unit:
    return Unit("gang", required, preferred, (), pods("p", count, shape))


def place(
    nodes: list[Node], gang: Unit, use: dict[str, NodeUse] | None = None, **problem: Any
) -> dict[str, str]:
    """The nodes of pods."""
    answer = solve(ClusterIndex(LEVELS, nodes, use), Problem(gang, **problem))
    assert isinstance(answer, Placed), answer
    return dict(answer.nodes)


def refuse(nodes: list[Node], gang: Unit, use: dict[str, NodeUse] | None = None, **problem: Any) -> NoFit:
    answer = solve(ClusterIndex(LEVELS, nodes, use), Problem(gang, **problem))
    assert isinstance(answer, NoFit), answer
    return answer


def reasons(answer: NoFit) -> set[Reason]:
    return {shortage.reason for report in answer.reports for shortage in report.shortages}
