"""Nodes, gangs, sets and topologies as the dashboard shows them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.naming import labels as label_keys
from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.api.naming.well_known import HOSTNAME
from grove.api.types.podclique import PodClique
from grove.api.types.podgang import GangPhase, PodGang
from grove.dashboard.cut_texts import cut, cut_reason
from grove.dashboard.model import (
    GangSummary,
    LevelLabel,
    NodeCells,
    PlacedUnit,
    SetSummary,
    TopologySummary,
    Use,
)
from grove.explanation.findings import reason_view, state_text
from grove.explanation.model import ReasonView
from grove.explanation.operator_lease import Leases
from grove.explanation.subtree import Subtree
from grove.operator.caches.owners import owning_graph
from grove.plan.conditions import without
from grove.plan.members import pod_state
from grove.plan.timestamps import timestamp
from grove.reasons.codes import MOMENTARY
from grove.topology.placement.model import Amounts, Node
from grove.views.status.status_view import known_reasons
from grove.views.status.verdict import verdict
from grove.views.topology.domain_view import CORDON_TAINT
from grove.views.topology.node_load import KEEPS_OUT

if TYPE_CHECKING:
    from grove.operator.caches.cluster_pods import ClusterPod
    from grove.operator.observers.cluster.free_slots import AcceleratorNames
    from grove.views.topology.topologies import AnyTopology

_HOST = "host"
_DONE = (GangPhase.RUNNING.value, GangPhase.SUCCEEDED.value)


def object_key(namespace: str, name: str) -> str:
    """The key of a set or gang."""
    return f"{namespace}/{name}"


def node_cells(
    node: Node,
    pods: Iterable[ClusterPod],
    claimed: Iterable[tuple[str, Amounts]],
    awaited: Callable[[ClusterPod], int],
    labels: Collection[str],
    accelerators: AcceleratorNames,
) -> NodeCells:
    """A node with the pods that are bound to it or nominated for it. `claimed`: by key of a gang, or empty,
    devices that are allocated to a claim. `awaited`: how many GPUs will be allocated to the claims of a pod
    of a gang that is not bound. `labels`: those of the levels of all topologies."""
    resources = accelerators(node.allocatable)
    counts: dict[tuple[str, bool], list[int]] = {}
    for pod in pods:
        gang = object_key(pod.namespace, pod.gang) if pod.gang else ""
        reserved = bool(gang) and not pod.node
        count = counts.setdefault((gang, reserved), [0, 0])
        count[0] += _sum(pod.profile.requests, resources) + (awaited(pod) if reserved else 0)
        count[1] += 1
    for gang, amounts in claimed:
        if gpus := _sum(amounts, resources):
            counts.setdefault((gang, False), [0, 0])[0] += gpus
    keeping_out = (each.key for each in node.taints if each.effect in KEEPS_OUT)
    return NodeCells(
        {key: node.labels[key] for key in labels if key in node.labels},
        _sum(node.allocatable, resources),
        node.ready,
        node.unschedulable,
        tuple(dict.fromkeys(key for key in keeping_out if key != CORDON_TAINT)),
        node.labels.get(NVIDIA_GPU_CLIQUE, ""),
        tuple(_use(*each, *counts[each]) for each in sorted(counts, key=_order)),
    )


def _use(gang: str, reserved: bool, gpus: int, pods: int) -> Use:
    return Use(gang, gpus, pods, reserved)


def _order(use: tuple[str, bool]) -> tuple[bool, str, bool]:
    """Gangs by their key, what belongs to none last."""
    return not use[0], *use


def gang_summary(
    tree: Subtree, gang: PodGang, leases: Leases, gpus: Callable[[PodClique], int], now: float
) -> GangSummary:
    """A gang. `tree` is its own; `gpus`: how many a pod of a clique requests."""
    meta, status = gang.metadata, gang.status
    cliques = {each.metadata.name: each for each in tree.cliques}
    groups = [(len(each.pod_references), cliques.get(each.name)) for each in gang.spec.pod_groups]
    waiting = _gang_reason(tree, leases, now) if status.phase not in _DONE else None
    created = meta.creation_timestamp or ""
    return GangSummary(
        set=object_key(meta.namespace, _set_name(gang)),
        phase=cut(status.phase, timing.SHOWN_NAME),
        pods=sum(pods for pods, _ in groups),
        ready=sum(pod_state.ready(pod) and not pod_state.terminating(pod) for pod in tree.pods),
        gpus=sum(pods * gpus(clique) for pods, clique in groups if clique is not None),
        created=created,
        waiting=waiting,
        waiting_since=(waiting.since or created) if waiting is not None else "",
        placed=tuple(
            PlacedUnit(each.name, each.topology_key, each.domain)
            for each in (status.placement.units if status.placement is not None else ())
        ),
        score=status.placement_score,
    )


def _set_name(gang: PodGang) -> str:
    return gang.metadata.labels.get(label_keys.PART_OF, "")


def _gang_reason(tree: Subtree, leases: Leases, now: float) -> ReasonView | None:
    """The first reason of a gang. What sets and groups say in their condition `Waiting` may be about another
    gang, so it is left out."""
    workload = tree.workload
    if workload is not None:
        status = replace(workload.status, conditions=_not_waiting(workload.status.conditions))
        workload = replace(workload, status=status)
    groups = tuple(
        replace(each, status=replace(each.status, conditions=_not_waiting(each.status.conditions)))
        for each in tree.groups
    )
    own = replace(tree, workload=workload, groups=groups)
    found = known_reasons(own, leases, now)
    return cut_reason(reason_view(found[0], tree.about.namespace)) if found else None


def _not_waiting(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return without(conditions, ConditionType.WAITING)


def set_summary(tree: Subtree, leases: Leases, revision: int, now: float) -> SetSummary:
    """A set, with the verdict and the reasons that `grove status` has. `tree` is that of the whole set."""
    workload = tree.workload
    assert workload is not None
    reasons = known_reasons(tree, leases, now)
    owner = owning_graph(workload.metadata)
    return SetSummary(
        verdict=verdict(tree, reasons, now),
        summary=state_text(tree),
        available=workload.status.available_replicas,
        replicas=workload.spec.replicas,
        created=workload.metadata.creation_timestamp or "",
        graph=owner.name if owner is not None else "",
        reasons=tuple(cut_reason(reason_view(each, tree.about.namespace)) for each in reasons),
        revision=revision,
    )


def changes_at(summary: SetSummary, now: float) -> float | None:
    """When the verdict changes without any event: a reason that is usual for a moment lasts longer."""
    times = (
        timestamp(each.since) + timing.MOMENT
        for each in summary.reasons
        if each.code in MOMENTARY and each.since
    )
    return min((time for time in times if time > now), default=None)


def topology_summary(topology: AnyTopology) -> TopologySummary:
    """A topology, without its hosts and what is inside of hosts."""
    levels: list[LevelLabel] = []
    for each in topology.spec.levels:
        if each.key == HOSTNAME or each.domain == _HOST:
            break
        levels.append(LevelLabel(each.domain, each.key))
    return TopologySummary(topology.metadata.name, tuple(levels))


def level_labels(topologies: Iterable[TopologySummary]) -> tuple[str, ...]:
    """The labels of the levels of all topologies."""
    return tuple(dict.fromkeys(level.label for each in topologies for level in each.levels))


def _sum(amounts: Mapping[str, int], resources: Iterable[str]) -> int:
    return sum([amounts.get(resource, 0) for resource in resources])
