"""Views of a topology: its domains as a tree, with the GPUs and the unusable nodes of each. Pure; the views
are also what `-o json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grove.api.formats.natural_order import natural_order
from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.topology.placement.capacity import Accelerators, free_slots
from grove.topology.placement.membership import depth, domain_path
from grove.topology.placement.model import Domain
from grove.views.claim_view import View
from grove.views.topology.node_load import NodeLoad

CORDON_TAINT = "node.kubernetes.io/unschedulable"


class Gpus(View, frozen=True):
    """GPUs by their use; the last four add up to the total."""

    total: int = 0
    ours: int = 0
    others: int = 0
    free: int = 0
    blocked: int = 0
    """Unused, on nodes that are cordoned or not ready."""


class PartitionView(View, frozen=True):
    """An NVLink partition: nodes with one value of the label `nvidia.com/gpu.clique`."""

    name: str
    nodes: int
    gpus: Gpus


class NodeView(View, frozen=True):
    """A node."""

    name: str
    gpus: Gpus
    ready: bool = True
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    partition: str = ""


class DomainView(View, frozen=True):
    """A domain with the narrower domains in it, or with its nodes if it is one of the narrowest."""

    level: str
    """Empty for the whole cluster."""
    name: str
    """Empty for nodes without the label of the level."""
    nodes: int
    gpus: Gpus
    not_ready: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    tainted: Mapping[str, tuple[str, ...]] = {}
    """By taint that keeps pods out, the nodes that have it."""
    partitions: tuple[PartitionView, ...] = ()
    slots: Mapping[int, int] = {}
    """By number of GPUs, how many jobs of that size fit into this domain now."""
    domains: tuple[DomainView, ...] = ()
    members: tuple[NodeView, ...] = ()


class LevelView(View, frozen=True):
    """A level of the topology."""

    name: str
    label: str
    domains: int
    slots: Mapping[int, int] = {}
    """By number of GPUs, how many jobs of that size fit, each into one domain of this level."""


class TopologyTree(View, frozen=True):
    """A topology with all nodes of the cluster."""

    name: str
    """Empty if the cluster has no topology."""
    levels: tuple[LevelView, ...]
    cluster: DomainView


def topology_tree(name: str, levels: Sequence[tuple[str, str]], nodes: Iterable[NodeLoad]) -> TopologyTree:
    """The tree of a topology, whose levels are names and label keys from broad to narrow."""
    keys = [key for _, key in levels]
    placed = [(domain_path(node.labels, keys), node) for node in nodes]
    placed.sort(key=lambda each: (tuple(map(_order, each[0])), natural_order(each[1].name)))
    builder = _Builder([level for level, _ in levels], depth([path for path, _ in placed]))
    slots = builder.slots(placed)
    return TopologyTree(
        name,
        tuple(
            LevelView(level, key, len({p[: i + 1] for p, _ in placed if p[i]}), dict(slots[i]))
            for i, (level, key) in enumerate(levels)
        ),
        builder.domain(placed, ()),
    )


_Placed = Sequence[tuple[Domain, NodeLoad]]


class _Builder:
    def __init__(self, levels: Sequence[str], deepest: int) -> None:
        self._levels, self._deepest = levels, deepest

    def domain(self, placed: _Placed, path: Domain) -> DomainView:
        """The domain of a path, with what is inside of it."""
        nodes, level = [node for _, node in placed], len(path)
        inner: dict[str, list[tuple[Domain, NodeLoad]]] = {}
        if level < len(self._levels) and (not path or path[-1]):
            for each in placed:
                inner.setdefault(each[0][level], []).append(each)
        below = [] if list(inner) == [""] else [self.domain(each, (*path, v)) for v, each in inner.items()]
        return DomainView(
            self._levels[level - 1] if path else "",
            path[-1] if path else "",
            len(nodes),
            _gpus(nodes),
            tuple(node.name for node in nodes if not node.ready),
            tuple(node.name for node in nodes if node.cordoned),
            _tainted(nodes),
            _partitions(nodes),
            dict(self.slots(placed)[level - 1]) if path and path[-1] else {},
            tuple(below),
            () if below else tuple(map(_node, nodes)),
        )

    def slots(self, placed: _Placed) -> tuple[Mapping[int, int], ...]:
        """By level, how many jobs of each size fit into these nodes. Only nodes that belong to the topology
        count."""
        deepest = self._deepest
        usable = (
            Accelerators(path, node.gpus, node.unused)
            for path, node in placed
            if node.usable and deepest and path[deepest - 1]
        )
        return free_slots(usable, len(self._levels))


def _gpus(nodes: Iterable[NodeLoad]) -> Gpus:
    found = list(nodes)
    return Gpus(
        sum(node.gpus for node in found),
        sum(node.ours for node in found),
        sum(node.others for node in found),
        sum(node.unused for node in found if node.usable),
        sum(node.unused for node in found if not node.usable),
    )


def _node(node: NodeLoad) -> NodeView:
    partition = node.labels.get(NVIDIA_GPU_CLIQUE, "")
    return NodeView(node.name, _gpus([node]), node.ready, node.cordoned, node.taints, partition)


def _tainted(nodes: Iterable[NodeLoad]) -> dict[str, tuple[str, ...]]:
    """The nodes of each taint, except the one that every cordoned node has."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        for key in node.taints:
            if key != CORDON_TAINT:
                found.setdefault(key, []).append(node.name)
    return {key: tuple(found[key]) for key in sorted(found)}


def _partitions(nodes: Iterable[NodeLoad]) -> tuple[PartitionView, ...]:
    found: dict[str, list[NodeLoad]] = {}
    for node in nodes:
        if name := node.labels.get(NVIDIA_GPU_CLIQUE):
            found.setdefault(name, []).append(node)
    return tuple(
        PartitionView(name, len(found[name]), _gpus(found[name])) for name in sorted(found, key=natural_order)
    )


def _order(value: str) -> tuple[bool, object]:
    """Domains in natural order; nodes without the label last."""
    return not value, natural_order(value)
