"""Small clusters and gangs for the tests of placement."""

from __future__ import annotations

from collections.abc import Mapping

from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ObservedNode
from grove.plan.placement.demand import Demand, WantedClique, WantedPod, gang_unit
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang, RoundResult
from grove.topology.placement.model import PODS, Amounts, Node, PodShape

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
LEVELS = (BLOCK, RACK, HOST)
GPU = "nvidia.com/gpu"


def node(name: str, rack: str, gpus: int = 8, block: str = "b0") -> Node:
    labels = {BLOCK: block, RACK: rack, HOST: name}
    return Node(name, labels, {GPU: gpus, PODS: 110})


def racks(count: int, hosts: int, gpus: int = 8) -> dict[str, ObservedNode]:
    """Racks r0, r1, ... with hosts r0-h0, r0-h1, ..."""
    names = [(f"r{rack}-h{host}", f"r{rack}") for rack in range(count) for host in range(hosts)]
    return {name: ObservedNode(node(name, rack, gpus)) for name, rack in names}


def used(observed: ObservedNode, gpus: int, priority: int = 0) -> ObservedNode:
    return ObservedNode(observed.node, {priority: {GPU: gpus, PODS: 1}})


def demand(
    name: str,
    pods: int,
    gpus: int = 8,
    *,
    minimum: int | None = None,
    required: str = "",
    preferred: str = "",
    existing: Mapping[int, WantedPod] | None = None,
    pinned: Mapping[str, Mapping[str, str]] | None = None,
    created: str = "",
) -> Demand:
    """A gang with one clique of the same name."""
    shape = PodShape({GPU: gpus, PODS: 1})
    slots = [PodSlot(name, index) for index in range(pods)]
    wanted = tuple((existing or {}).get(slot.number) or WantedPod(slot) for slot in slots)
    clique = WantedClique(name, pods if minimum is None else minimum, shape, wanted)
    pack = {how: key for how, key in (("required", required), ("preferred", preferred)) if key}
    spec = {"podgroups": [{"name": name, "minReplicas": clique.min_available}]}
    constraint = {"topologyConstraint": {"packConstraint": pack}} if pack else {}
    unit = gang_unit({"metadata": {"name": f"{name}-gang"}, "spec": {**spec, **constraint}}, [clique])
    return Demand(
        GangName("ns", f"{name}-gang"),
        unit,
        wanted,
        LEVELS,
        pinned=pinned or {},
        created=created,
        constrained=bool(required),
    )


def gated(wanted: Demand, nodes: Mapping[PodSlot, str] | None = None) -> Demand:
    """The same demand once its pods exist and are gated."""
    from msgspec.structs import replace

    pods = tuple(replace(pod, name=f"{pod.slot.clique}-{pod.slot.number}") for pod in wanted.pods)
    return replace(wanted, pods=pods)


def asks(wanted: Demand, **observed: object) -> ObservedGang:
    return ObservedGang(GangState(wanted), **observed)  # type: ignore[arg-type]


def changes(
    nodes: Mapping[str, ObservedNode],
    *gangs: ObservedGang,
    unbound: tuple[Amounts, ...] = (),
    **other: object,
) -> ClusterChanges:
    return ClusterChanges(nodes, gangs, unbound=unbound, **other)  # type: ignore[arg-type]


def decided(result: RoundResult, gang: str) -> Assignment:
    found = next(state.decision for name, state in result.changed.items() if name.name == gang)
    assert isinstance(found, Assignment)
    return found


def waits(result: RoundResult, gang: str) -> str:
    found = next(state.decision for name, state in result.changed.items() if name.name == gang)
    assert isinstance(found, Waiting)
    return found.message
