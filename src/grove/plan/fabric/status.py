"""Computes `status.computeDomains` of a set and the condition `ComputeDomainsReady`. For users only: no
decision depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSet, PodCliqueSetStatus
from grove.fabrics.membership import DomainMembership
from grove.fabrics.provider import Domain, DomainView, FabricDomainProvider
from grove.plan.fabric.state import DomainState, state_message
from grove.plan.status import conditions


class DomainPhase(StrEnum):
    """The phase of a domain."""

    MISSING = "Missing"
    PENDING = "Pending"
    FORMING = "Forming"
    READY = "Ready"
    DEGRADED = "Degraded"
    TERMINATING = "Terminating"
    CONFLICT = "Conflict"


class DomainObservation(Struct, frozen=True):
    """A domain that a set uses or is going to use."""

    name: str
    provider: FabricDomainProvider
    membership: DomainMembership
    state: DomainState
    found: Domain | None = None
    failure: LastError | None = None
    """Why it could not be created."""
    template: str = ""
    """The ResourceClaimTemplate of its pods."""
    busy: str = ""
    """The message about the holders of the channels that its pods wait for."""
    nodes: frozenset[str] = frozenset()
    """The nodes that its pods are on: each of them should be in the domain."""


def with_domains(
    status: PodCliqueSetStatus, workload: PodCliqueSet, observations: Sequence[DomainObservation], now: float
) -> PodCliqueSetStatus:
    """Adds the state of its domains to the status of a set."""
    if not observations:
        remaining = conditions.without(status.conditions, ConditionType.COMPUTE_DOMAINS_READY)
        return replace(status, compute_domains=(), conditions=remaining)
    known = {summary.name: summary for summary in workload.status.compute_domains}
    summaries = tuple(_summary(observation, known.get(observation.name)) for observation in observations)
    condition = replace(_condition(observations, summaries), observed_generation=workload.metadata.generation)
    return replace(
        status,
        compute_domains=summaries,
        conditions=conditions.merge_conditions(status.conditions, (condition,), now),
    )


def failures(observations: Sequence[DomainObservation]) -> tuple[LastError, ...]:
    """Why domains could not be created."""
    return tuple(observation.failure for observation in observations if observation.failure is not None)


def _summary(observation: DomainObservation, known: ComputeDomainSummary | None) -> ComputeDomainSummary:
    view = observation.provider.observe(observation.found) if observation.found is not None else DomainView()
    view = replace(view, total_nodes=max(view.total_nodes, len(observation.nodes.union(view.nodes))))
    return ComputeDomainSummary(
        name=observation.name,
        mode=observation.membership.requirement.mode.value,
        replica_indices=observation.membership.replicas,
        uid=observation.found.metadata.uid if observation.found is not None else "",
        phase=_phase(observation, view, known).value,
        ready_nodes=view.ready_nodes,
        total_nodes=view.total_nodes,
        clique_ids=view.partitions,
    )


def _phase(
    observation: DomainObservation, view: DomainView, known: ComputeDomainSummary | None
) -> DomainPhase:
    special = {
        DomainState.TERMINATING: DomainPhase.TERMINATING,
        DomainState.CONFLICT: DomainPhase.CONFLICT,
        DomainState.TEMPLATE_CONFLICT: DomainPhase.CONFLICT,
    }
    if observation.state in special:
        return special[observation.state]
    if observation.found is None or observation.state is DomainState.NOT_SERVED:
        return DomainPhase.MISSING
    if not view.total_nodes:
        return DomainPhase.PENDING
    if view.ready_nodes == view.total_nodes:
        return DomainPhase.READY
    was_ready = known is not None and known.phase in (DomainPhase.READY, DomainPhase.DEGRADED)
    same = known is not None and known.uid == observation.found.metadata.uid
    return DomainPhase.DEGRADED if was_ready and same else DomainPhase.FORMING


def _condition(
    observations: Sequence[DomainObservation], summaries: Sequence[ComputeDomainSummary]
) -> Condition:
    """Reports the most severe problem; a split fabric is appended to any other message."""
    type_ = ConditionType.COMPUTE_DOMAINS_READY
    for state, reason in _ERROR_STATES:
        if found := [observation for observation in observations if observation.state is state]:
            message = state_message(
                state, found[0].provider, _names(found), _listed([one.template for one in found])
            )
            return conditions.new_condition(type_, False, reason, message)
    if failed := [observation for observation in observations if observation.failure is not None]:
        message = f"{_names(failed)} could not be created: {failures(failed)[0].description}"
        return conditions.new_condition(type_, False, Reason.CREATE_FAILED, message)
    waiting = [one for one in summaries if one.phase in (DomainPhase.MISSING, DomainPhase.PENDING)]
    forming = [one for one in summaries if one.phase in (DomainPhase.FORMING, DomainPhase.DEGRADED)]
    more = _joined(_split(summaries), *(observation.busy for observation in observations))
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


def _names(named: Sequence[DomainObservation] | Sequence[ComputeDomainSummary]) -> str:
    return _listed([one.name for one in named])


def _listed(listed: Sequence[str]) -> str:
    more = (
        f" and {len(listed) - timing.FABRIC_NAMES_SHOWN} more"
        if len(listed) > timing.FABRIC_NAMES_SHOWN
        else ""
    )
    return ", ".join(listed[: timing.FABRIC_NAMES_SHOWN]) + more
