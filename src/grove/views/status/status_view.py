"""Builds the view of one object for `grove status`, from what belongs to it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from grove.api.conditions import ConditionType
from grove.api.formats.natural_order import natural_order
from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.status import READY
from grove.explanation.findings import (
    find_reasons,
    reason_view,
    state_text,
    written_conditions,
)
from grove.explanation.model import ObjectRef
from grove.explanation.operator_lease import Leases, operator_reason
from grove.explanation.subtree import POD, Subtree, is_whole_set
from grove.plan.members import pod_state
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason
from grove.views.operator_view import operator_view
from grove.views.set_view import FabricDomainView, fabric_domain, placed_domains
from grove.views.status.model import (
    ComponentView,
    ConstraintsView,
    ErrorView,
    GangStatusView,
    GraphView,
    ReplicaCounts,
    RoleView,
    RolloutView,
    StatusView,
)
from grove.views.status.verdict import condition, verdict
from grove.views.topology_view import topology_view

_STOPPED = {
    ReasonCode.UPDATE_PAUSED: "Paused",
    ReasonCode.PROGRESS_DEADLINE_EXCEEDED: "DeadlineExceeded",
}


def status_view(tree: Subtree, leases: Leases, now: float) -> StatusView:
    """The object as statuses and pods describe it. `leases` are those of operators, as far as known."""
    reasons = known_reasons(tree, leases, now)
    workload = tree.workload if is_whole_set(tree) else None
    # Of a pod alone: the other pods of its gang are not known.
    parts = Subtree(tree.about) if tree.about.kind == POD else tree
    return StatusView(
        about=tree.about,
        verdict=verdict(tree, reasons, now),
        summary=state_text(tree),
        operator=operator_view(leases, now) if leases is not None else None,
        graph=_graph(tree.graph),
        replicas=_replicas(workload) if workload is not None else None,
        rollout=_rollout(workload, reasons) if workload is not None else None,
        constraints=_constraints(parts.workload) if parts.workload is not None else None,
        roles=tuple(_roles(parts)),
        gangs=tuple(_gangs(parts)),
        fabric_domains=_fabric_domains(parts),
        waits_for=tuple(reason_view(each, tree.about.namespace) for each in reasons),
        errors=tuple(_errors(tree)),
    )


def known_reasons(tree: Subtree, leases: Leases, now: float) -> list[WaitReason]:
    """Why an object waits, as statuses, pods and Leases say."""
    missing = operator_reason(leases, tree.workload, now)
    # Without an operator, what the last one has written is still what the API knows.
    last_known = () if missing is None else written_conditions(tree)
    return find_reasons(tree, {}, last_known, missing)


def _replicas(workload: PodCliqueSet) -> ReplicaCounts:
    status = workload.status
    return ReplicaCounts(workload.spec.replicas, status.available_replicas, status.updated_replicas)


def _rollout(workload: PodCliqueSet, reasons: Iterable[WaitReason]) -> RolloutView | None:
    progress = workload.status.update_progress
    if progress is None:
        return None
    stopped = next((_STOPPED[each.code] for each in reasons if each.code in _STOPPED), "Progressing")
    return RolloutView(
        state="Complete" if progress.update_ended_at is not None else stopped,
        updated_replicas=workload.status.updated_replicas,
        replicas=workload.spec.replicas,
        updated_cliques=progress.updated_pod_cliques_count,
        cliques=progress.total_pod_cliques_count,
        updated_groups=progress.updated_pod_clique_scaling_groups_count,
        groups=progress.total_pod_clique_scaling_groups_count,
        updating=tuple(each.replica_index for each in progress.currently_updating),
        started=progress.update_started_at,
        ended=progress.update_ended_at,
    )


def _constraints(workload: PodCliqueSet) -> ConstraintsView | None:
    topology = topology_view(workload)
    enforced = condition(workload.status.conditions, ConditionType.CONSTRAINTS_ENFORCED)
    if topology is None and enforced is None:
        return None
    return ConstraintsView(
        topology.name if topology is not None else "",
        topology.required if topology is not None else "",
        _is_true(enforced.status) if enforced is not None else None,
        enforced.reason if enforced is not None else "",
        topology.problem if topology is not None else "",
    )


def _is_true(status: str) -> bool | None:
    return {"True": True, "False": False}.get(status)


def _roles(tree: Subtree) -> Iterator[RoleView]:
    """The pods of each clique of the template, in the order of the template."""
    staying = (pod for pod in tree.pods if not pod_state.terminating(pod) and pod_state.ready(pod))
    ready = Counter(pod.metadata.labels.get(labels.CLIQUE_TEMPLATE, "") for pod in staying)
    wanted, updated = Counter[str](), Counter[str]()
    for clique in tree.cliques:
        role = clique.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
        wanted[role] += clique.spec.replicas
        updated[role] += clique.status.updated_replicas
    template = tree.workload.spec.template.cliques if tree.workload is not None else ()
    listed = [each.name for each in template if each.name in wanted]
    for role in (*listed, *sorted(wanted.keys() - set(listed))):
        yield RoleView(role, ready[role], wanted[role], updated[role])


def _gangs(tree: Subtree) -> Iterator[GangStatusView]:
    staying = (pod for pod in tree.pods if not pod_state.terminating(pod) and pod_state.ready(pod))
    ready = Counter(pod.metadata.labels.get(labels.GANG, "") for pod in staying)
    for gang in sorted(tree.gangs, key=lambda each: natural_order(each.metadata.name)):
        yield _gang(gang, ready[gang.metadata.name])


def _gang(gang: PodGang, ready: int) -> GangStatusView:
    status = gang.status
    enforced = condition(status.conditions, ConditionType.CONSTRAINTS_ENFORCED)
    unhealthy = condition(status.conditions, ConditionType.UNHEALTHY)
    return GangStatusView(
        gang.metadata.name,
        status.phase,
        ready,
        sum(len(group.pod_references) for group in gang.spec.pod_groups),
        status.placement_score,
        placed_domains(gang),
        _is_true(enforced.status) if enforced is not None else None,
        status.placement.fallback if status.placement is not None else None,
        unhealthy.message if unhealthy is not None and unhealthy.status == "True" else "",
    )


def _fabric_domains(tree: Subtree) -> tuple[FabricDomainView, ...]:
    """The domains of the set's replicas that the object is part of."""
    if tree.workload is None:
        return ()
    indices = {each.metadata.labels.get(labels.SET_REPLICA, "") for each in tree.cliques}
    return tuple(
        fabric_domain(each)
        for each in tree.workload.status.compute_domains
        if is_whole_set(tree) or indices & set(map(str, each.replica_indices))
    )


def _errors(tree: Subtree) -> Iterator[ErrorView]:
    """The errors of the set, its groups and its cliques, the latest first."""
    found = [
        ErrorView(
            ObjectRef(each.KIND.name, each.metadata.name, each.metadata.namespace),
            error.code,
            " ".join(error.description.split()),
            error.observed_at,
        )
        for each in (tree.workload, *tree.groups, *tree.cliques)
        if each is not None
        for error in each.status.last_errors
    ]
    yield from sorted(found, key=lambda each: each.observed_at, reverse=True)


def _graph(graph: DynamoGraphDeployment | None) -> GraphView | None:
    if graph is None:
        return None
    status, ready = graph.status, condition(graph.status.conditions, READY)
    return GraphView(
        graph.metadata.name,
        status.state,
        _is_true(ready.status) if ready is not None else None,
        ready.message if ready is not None and ready.status != "True" else "",
        tuple(
            ComponentView(
                name, each.component_kind, each.ready_replicas or 0, each.replicas, each.updated_replicas
            )
            for name, each in sorted(status.components.items())
        ),
    )
