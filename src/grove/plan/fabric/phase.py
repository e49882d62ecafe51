"""The phase of a fabric domain, and the events of a set when it changes. The phase is about the nodes of the
domain; `grove.plan.fabric.problems` has why its pods cannot use it nevertheless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.formats.name_list import name_list
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSet, PodCliqueSetStatus
from grove.fabrics.provider import DomainView
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan.fabric.pod_counts import PodCountsOfSet
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import reference


class DomainPhase(StrEnum):
    """The phase of a domain."""

    MISSING = "Missing"
    PENDING = "Pending"
    FORMING = "Forming"
    READY = "Ready"
    DEGRADED = "Degraded"
    TERMINATING = "Terminating"
    CONFLICT = "Conflict"


def view_of(domain: ResolvedDomain) -> DomainView:
    """The state of a domain, with the nodes of its pods that it does not list as not ready."""
    view = domain.provider.observe(domain.found) if domain.found is not None else DomainView()
    missing = domain.pods.nodes.difference(view.nodes)
    return replace(
        view,
        total_nodes=view.total_nodes + len(missing),
        not_ready=tuple(sorted(missing.union(view.not_ready))),
    )


_OF_STATES = {
    DomainState.TERMINATING: DomainPhase.TERMINATING,
    DomainState.CONFLICT: DomainPhase.CONFLICT,
    DomainState.TEMPLATE_CONFLICT: DomainPhase.CONFLICT,
    DomainState.NOT_SERVED: DomainPhase.MISSING,
    DomainState.OUTDATED: DomainPhase.MISSING,
}


def phase_of(
    domain: ResolvedDomain, view: DomainView, known: ComputeDomainSummary | None, pods: PodCountsOfSet
) -> DomainPhase:
    """The phase of a domain; `known` is what the status of the set says about it."""
    if domain.state in _OF_STATES:
        return _OF_STATES[domain.state]
    if domain.found is None:
        return DomainPhase.MISSING
    if known is not None and known.uid != domain.found.metadata.uid:
        known = None
    was_degraded = known is not None and known.phase == DomainPhase.DEGRADED
    if 0 < view.total_nodes == view.ready_nodes and not (was_degraded and pods.can_grow(domain)):
        return DomainPhase.READY
    if was_degraded or _lost_nodes(domain, view, known):
        return DomainPhase.DEGRADED
    return DomainPhase.FORMING if view.total_nodes else DomainPhase.PENDING


def _lost_nodes(domain: ResolvedDomain, view: DomainView, known: ComputeDomainSummary | None) -> bool:
    """Whether nodes that were ready are not any more. A node that joins is not ready at first, which is no
    loss: no pod has started on it yet."""
    lost = not domain.pods.started.isdisjoint(view.not_ready)
    return (
        known is not None
        and known.phase == DomainPhase.READY
        and view.ready_nodes < known.ready_nodes
        and lost
    )


def node_counts(domain: ResolvedDomain) -> str:
    """How many nodes of a domain are ready, and which are not."""
    view = view_of(domain)
    counts = f"{domain.name}: {view.ready_nodes}/{view.total_nodes} nodes ready"
    return f"{counts}, not {name_list(view.not_ready)}" if view.not_ready else counts


def phase_events(
    workload: PodCliqueSet, status: PodCliqueSetStatus, domains: Sequence[ResolvedDomain]
) -> Iterator[PlannedEvent]:
    """The events of a set about domains that degrade or recover, emitted once this status is written."""
    known = {(summary.name, summary.uid): summary.phase for summary in workload.status.compute_domains}
    for domain, summary in zip(domains, status.compute_domains, strict=True):
        before, phase = known.get((summary.name, summary.uid)), summary.phase
        if phase == DomainPhase.DEGRADED and before != phase:
            reason, note = EventReason.COMPUTE_DOMAIN_DEGRADED, f"nodes were lost: {node_counts(domain)}"
        elif before == DomainPhase.DEGRADED and phase == DomainPhase.READY:
            reason, note = EventReason.COMPUTE_DOMAIN_RECOVERED, f"{summary.name}: all nodes are ready again"
        else:
            continue
        warning = reason is EventReason.COMPUTE_DOMAIN_DEGRADED
        yield PlannedEvent(reference(workload), reason, note, warning=warning, identity=summary.uid)
