"""Small random clusters and gangs, small enough to try every placement."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from msgspec.structs import replace

from grove.topology.placement.model import (
    Node,
    NodeUse,
    Partition,
    Pod,
    PodShape,
    Problem,
    Requirement,
    Taint,
    Term,
    Toleration,
    Unit,
)
from tests.topology.placement.brute_force import Cluster

LEVELS = ("zone", "rack", "host")
GPU = "nvidia.com/gpu"
_NAMED = Term(fields=(Requirement("metadata.name", "In", ("n0", "n1")),))
_AFFINITIES = (
    None,
    None,
    None,
    (Term((Requirement("disk", "NotIn", ("hdd",)),)),),
    (_NAMED, Term((Requirement("zone", "Exists"),))),
)


class Generator:
    """An instance from a seed: ten times as fast as drawing each value from a strategy."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._levels = LEVELS[: self._random.randint(1, 3)]

    def cluster(self) -> Cluster:
        nodes = [self._node(number) for number in range(self._random.randint(1, 4))]
        if self._random.random() < 0.4:  # symmetry is where a search can skip too much
            nodes = [replace(node, allocatable=nodes[0].allocatable) for node in nodes]
        return self._levels, nodes, {node.name: self._use() for node in nodes if self._random.random() < 0.5}

    def gang(self, nodes: list[Node]) -> Unit:
        shapes = [self._shape() for _ in range(self._random.randint(1, 3))]
        names = [f"p{number}" for number in range(self._random.choice((1, 2, 3, 3, 4, 4, 5)))]
        cliques = []
        while names:
            shape, size = self._random.choice(shapes), self._random.randint(1, 3)
            pods = tuple(Pod(name, shape, node=self._bound(nodes)) for name in names[:size])
            cliques.append(self._unit(f"c{len(cliques)}", (), pods))
            names = names[size:]
        grouped = self._random.randint(0, len(cliques))
        group = (self._unit("group", tuple(cliques[:grouped]), ()),) if grouped else ()
        return self._unit("gang", (*group, *cliques[grouped:]), ())

    def _node(self, number: int) -> Node:
        pick = self._random.choice
        labels = {
            "zone": pick(("a", "a", "a", "b", "b", "")),
            "rack": pick(("r1", "r1", "r2", "r2", "")),
            "host": f"n{number}",
            "disk": pick(("ssd", "hdd")),
        }
        allocatable = {"cpu": pick((0, 6, 8, 9, 9)), GPU: pick((0, 2, 4, 8)), "pods": pick((2, 9, 9, 9))}
        if self._random.random() < 0.2:
            del allocatable[GPU]
        return Node(
            f"n{number}",
            {key: value for key, value in labels.items() if value},
            allocatable,
            (Taint("dedicated", "gpu"),) if self._rarely() else (),
            ready=not self._rarely(),
            unschedulable=self._rarely(),
        )

    def _use(self) -> NodeUse:
        used = {"cpu": self._random.randint(0, 3), GPU: self._random.randint(0, 3), "pods": 1}
        return NodeUse({0: used}) if self._random.random() < 0.5 else NodeUse(reserved=used)

    def _shape(self) -> PodShape:
        return PodShape(
            {"cpu": self._random.randint(0, 3), GPU: self._random.randint(0, 2), "pods": 1},
            {"disk": "ssd"} if self._rarely() else {},
            self._random.choice(_AFFINITIES),
            (Toleration(operator="Exists"),) if self._random.random() < 0.5 else (),
            self._rarely(),
        )

    def _unit(self, name: str, parts: tuple[Unit, ...], pods: tuple[Pod, ...]) -> Unit:
        levels = ("", "", *self._levels)
        return Unit(name, self._random.choice(levels), self._random.choice(levels), parts, pods)

    def _bound(self, nodes: list[Node]) -> str:
        return self._random.choice(nodes).name if self._rarely() else ""

    def _rarely(self) -> bool:
        return self._random.random() < 0.06


def instance(seed: int) -> tuple[Cluster, Problem]:
    generator = Generator(seed)
    cluster = generator.cluster()
    return cluster, Problem(generator.gang(cluster[1]))


instances = st.integers(0, 2**48).map(instance)

PARTITION = "partition"


def packed_instance(seed: int) -> tuple[Cluster, Problem]:
    """An instance whose pods belong to up to two partitions, the nodes of which cross the levels."""
    (levels, nodes, use), problem = instance(seed)
    random = Random(seed)
    nodes = [
        replace(node, labels={**node.labels, PARTITION: value} if value else node.labels)
        for node in nodes
        for value in (random.choice(("p", "p", "q", "q", "")),)
    ]
    partitions = tuple(
        Partition(PARTITION, random.random() < 0.5, random.choice(("", "", "p", "r")))
        for _ in range(random.randint(1, 2))
    )
    numbers = [(), *((number,) for number in range(len(partitions)))]
    shapes: dict[int, PodShape] = {}

    def packed(unit: Unit) -> Unit:
        pods = []
        for pod in unit.pods:
            shape = shapes.setdefault(
                id(pod.shape),
                replace(pod.shape, partitions=random.choice(numbers), fabric=random.random() < 0.5),
            )
            pods.append(replace(pod, shape=shape))
        return replace(unit, pods=tuple(pods), parts=tuple(map(packed, unit.parts)))

    return (levels, nodes, use), replace(problem, gang=packed(problem.gang), partitions=partitions)


packed_instances = st.integers(0, 2**48).map(packed_instance)
