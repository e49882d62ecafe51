"""Computes `status.computeDomains` of a set and the condition `ComputeDomainsReady`. For users only: no
decision depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.conditions import ConditionType
from grove.api.formats.name_list import name_list
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSet, PodCliqueSetStatus
from grove.fabrics.provider import DomainView
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan import conditions
from grove.plan.fabric.state import state_message


class DomainPhase(StrEnum):
    """The phase of a domain."""

    MISSING = "Missing"
    PENDING = "Pending"
    FORMING = "Forming"
    READY = "Ready"
    DEGRADED = "Degraded"
    TERMINATING = "Terminating"
    CONFLICT = "Conflict"


def with_domains(
    status: PodCliqueSetStatus, workload: PodCliqueSet, domains: Sequence[ResolvedDomain], now: float
) -> PodCliqueSetStatus:
    """Adds the state of its domains to the status of a set."""
    if not domains:
        remaining = conditions.without(status.conditions, ConditionType.COMPUTE_DOMAINS_READY)
        return replace(status, compute_domains=(), conditions=remaining)
    known = {summary.name: summary for summary in workload.status.compute_domains}
    summaries = tuple(_summary(domain, known.get(domain.name)) for domain in domains)
    condition = replace(_condition(domains, summaries), observed_generation=workload.metadata.generation)
    return replace(
        status,
        compute_domains=summaries,
        conditions=conditions.merge_conditions(status.conditions, (condition,), now),
    )


def failures(domains: Sequence[ResolvedDomain]) -> tuple[LastError, ...]:
    """Why domains could not be created."""
    return tuple(domain.report.failure for domain in domains if domain.report.failure is not None)


def _summary(domain: ResolvedDomain, known: ComputeDomainSummary | None) -> ComputeDomainSummary:
    view = domain.provider.observe(domain.found) if domain.found is not None else DomainView()
    view = replace(view, total_nodes=max(view.total_nodes, len(domain.nodes.union(view.nodes))))
    return ComputeDomainSummary(
        name=domain.name,
        mode=domain.requirement.mode.value,
        replica_indices=domain.membership.replicas,
        uid=domain.found.metadata.uid if domain.found is not None else "",
        phase=_phase(domain, view, known).value,
        ready_nodes=view.ready_nodes,
        total_nodes=view.total_nodes,
        clique_ids=view.partitions,
    )


def _phase(domain: ResolvedDomain, view: DomainView, known: ComputeDomainSummary | None) -> DomainPhase:
    special = {
        DomainState.TERMINATING: DomainPhase.TERMINATING,
        DomainState.CONFLICT: DomainPhase.CONFLICT,
        DomainState.TEMPLATE_CONFLICT: DomainPhase.CONFLICT,
    }
    if domain.state in special:
        return special[domain.state]
    if domain.found is None or domain.state is DomainState.NOT_SERVED:
        return DomainPhase.MISSING
    if not view.total_nodes:
        return DomainPhase.PENDING
    if view.ready_nodes == view.total_nodes:
        return DomainPhase.READY
    was_ready = known is not None and known.phase in (DomainPhase.READY, DomainPhase.DEGRADED)
    same = known is not None and known.uid == domain.found.metadata.uid
    return DomainPhase.DEGRADED if was_ready and same else DomainPhase.FORMING


def _condition(domains: Sequence[ResolvedDomain], summaries: Sequence[ComputeDomainSummary]) -> Condition:
    """Reports the most severe problem; a split fabric is appended to any other message."""
    type_ = ConditionType.COMPUTE_DOMAINS_READY
    for state, reason in _ERROR_STATES:
        if found := [domain for domain in domains if domain.state is state]:
            message = state_message(
                state, found[0].provider, _names(found), name_list([one.template for one in found])
            )
            return conditions.new_condition(type_, False, reason, message)
    if failed := [one for one in domains if one.found is None and one.report.failure is not None]:
        message = f"{_names(failed)} could not be created: {failures(failed)[0].description}"
        return conditions.new_condition(type_, False, Reason.CREATE_FAILED, message)
    waiting = [one for one in summaries if one.phase in (DomainPhase.MISSING, DomainPhase.PENDING)]
    forming = [one for one in summaries if one.phase in (DomainPhase.FORMING, DomainPhase.DEGRADED)]
    more = _joined(_split(summaries), *(domain.report.busy for domain in domains))
    if forming:
        message = ", ".join(f"{one.name}: {one.ready_nodes}/{one.total_nodes} nodes ready" for one in forming)
        return conditions.new_condition(type_, False, Reason.NODES_NOT_READY, _joined(message, more))
    if waiting:
        message = f"no pod of {_names(waiting)} has a node yet"
        return conditions.new_condition(type_, False, Reason.WAITING_FOR_PODS, _joined(message, more))
    message = f"{len(summaries)} of {len(summaries)} domains are ready"
    return conditions.new_condition(type_, True, Reason.ALL_READY, _joined(message, more))


_ERROR_STATES = (
    (DomainState.NOT_SERVED, Reason.CRD_MISSING),
    (DomainState.CONFLICT, Reason.NAME_CONFLICT),
    (DomainState.TEMPLATE_CONFLICT, Reason.NAME_CONFLICT),
    (DomainState.TERMINATING, Reason.TERMINATING),
)


def _split(summaries: Sequence[ComputeDomainSummary]) -> str:
    return "; ".join(
        f"{one.name} is split over {len(one.clique_ids)} partitions: {', '.join(one.clique_ids)}"
        for one in summaries
        if len(one.clique_ids) > 1
    )


def _joined(*message: str) -> str:
    return "; ".join(filter(None, message))


def _names(named: Sequence[ResolvedDomain] | Sequence[ComputeDomainSummary]) -> str:
    return name_list([one.name for one in named])
