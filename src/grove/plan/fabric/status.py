"""Computes `status.computeDomains` of a set and the condition `ComputeDomainsReady`. For users only: no
decision depends on it.

The condition is False whenever pods cannot use their domain, although the driver may report it as ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.conditions import ConditionType
from grove.api.formats.name_list import name_list
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSet, PodCliqueSetStatus
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan import conditions
from grove.plan.fabric.phase import DomainPhase, node_counts, phase_of, view_of
from grove.plan.fabric.pod_counts import PodCountsOfSet
from grove.plan.fabric.problems import SEVERITY, DomainProblem, all_partitions, problems_of
from grove.plan.fabric.state import state_message
from grove.plan.model import ReplicaSummary


def with_domains(
    status: PodCliqueSetStatus,
    workload: PodCliqueSet,
    domains: Sequence[ResolvedDomain],
    now: float,
    replicas: Sequence[ReplicaSummary] = (),
) -> PodCliqueSetStatus:
    """Adds the state of its domains to the status of a set, with what its replicas report about their
    pods."""
    if not domains:
        remaining = conditions.without(status.conditions, ConditionType.COMPUTE_DOMAINS_READY)
        return replace(status, compute_domains=(), conditions=remaining)
    known = {summary.name: summary for summary in workload.status.compute_domains}
    pods = PodCountsOfSet(chain.from_iterable(each.domain_pods for each in replicas))
    shortage = next((each.channel_shortage for each in replicas if each.channel_shortage), "")
    summaries = tuple(_summary(domain, known.get(domain.name), pods, now) for domain in domains)
    found = next(_findings(domains, summaries, pods, shortage, now))
    condition = conditions.new_condition(
        ConditionType.COMPUTE_DOMAINS_READY, found.reason is Reason.ALL_READY, found.reason, found.message
    )
    condition = replace(condition, observed_generation=workload.metadata.generation)
    return replace(
        status,
        compute_domains=summaries,
        conditions=conditions.merge_conditions(status.conditions, (condition,), now),
    )


def failures(domains: Sequence[ResolvedDomain]) -> tuple[LastError, ...]:
    """Why domains could not be created."""
    return tuple(domain.report.failure for domain in domains if domain.report.failure is not None)


def _summary(
    domain: ResolvedDomain, known: ComputeDomainSummary | None, pods: PodCountsOfSet, now: float
) -> ComputeDomainSummary:
    view, found = view_of(domain), domain.found
    summary = ComputeDomainSummary(
        name=domain.name,
        mode=domain.requirement.mode.value,
        replica_indices=domain.membership.replicas,
        uid=found.metadata.uid if found is not None else "",
        phase=phase_of(domain, view, known, pods).value,
        ready_nodes=view.ready_nodes,
        total_nodes=view.total_nodes,
        clique_ids=tuple(all_partitions(domain.provider, found, domain.pods)) if found is not None else (),
    )
    reason = next(_findings([domain], [summary], pods, "", now)).reason
    return summary if reason is Reason.ALL_READY else replace(summary, reason=reason.value)


def _findings(
    domains: Sequence[ResolvedDomain],
    summaries: Sequence[ComputeDomainSummary],
    pods: PodCountsOfSet,
    shortage: str,
    now: float,
) -> Iterator[DomainProblem]:
    """What the condition reports, the most severe first; the last one is that all domains are ready."""
    for state, reason in _ERROR_STATES:
        if found := [domain for domain in domains if domain.state is state]:
            yield DomainProblem(reason, f"{_state_messages(found)} (needed by {_cliques(found)})")
    if failed := [one for one in domains if one.state in _UNFINISHED and one.report.failure is not None]:
        yield DomainProblem(
            Reason.CREATE_FAILED, f"{_failure_messages(failed)} (needed by {_cliques(failed)})"
        )
    rest = [*_problems(domains, pods, shortage, now), *_unready(domains, summaries, pods)]
    for number, each in enumerate(rest):
        message = "; ".join(other.message for other in rest[number:])
        yield DomainProblem(each.reason, message)
    count = len(summaries)
    yield DomainProblem(Reason.ALL_READY, f"{count} of {count} domains are ready")


def _state_messages(domains: Sequence[ResolvedDomain]) -> str:
    """The messages about domains of one state; those that differ only in the name are one message."""

    def message(named: Sequence[ResolvedDomain], names: str, templates: str) -> str:
        first = named[0]
        return state_message(first.state, first.provider, names, templates, first.found)

    alike: dict[str, list[ResolvedDomain]] = {}
    for domain in domains:
        alike.setdefault(message([domain], "", ""), []).append(domain)
    messages = [
        message(named, _names(named), name_list([one.template for one in named])) for named in alike.values()
    ]
    return name_list(messages, separator="; ")


def _failure_messages(domains: Sequence[ResolvedDomain]) -> str:
    alike: dict[str, list[ResolvedDomain]] = {}
    for domain in domains:
        for failure in failures([domain]):
            alike.setdefault(failure.description, []).append(domain)
    messages = [
        f"{_names(named)} could not be {'created' if named[0].found is None else 'joined'}: {why}"
        for why, named in alike.items()
    ]
    return name_list(messages, separator="; ")


def _problems(
    domains: Sequence[ResolvedDomain], pods: PodCountsOfSet, shortage: str, now: float
) -> Iterator[DomainProblem]:
    """The problems of domains, those of one kind together. More pods than channels is not the fault of other
    domains."""
    by_reason: dict[Reason, list[str]] = {}
    for domain in domains:
        for problem in problems_of(domain, now):
            by_reason.setdefault(problem.reason, []).append(problem.message)
        if count := pods.exceeds_channels(domain):
            nodes = "1 node has" if domain.channels == 1 else f"{domain.channels} nodes have"
            message = (
                f"{domain.name}: {count.scheduled} of {count.wanted} pods have a node; each needs one of its "
                f"own, and {nodes} a channel"
            )
            by_reason.setdefault(Reason.ONE_MEMBER_POD_PER_NODE, []).append(message)
    if shortage:
        by_reason.pop(Reason.CHANNEL_BUSY, None)
        by_reason[Reason.ONE_MEMBER_POD_PER_NODE] = [shortage]
    for reason in SEVERITY:
        if messages := by_reason.get(reason):
            yield DomainProblem(reason, name_list(messages, separator="; "))


def _unready(
    domains: Sequence[ResolvedDomain], summaries: Sequence[ComputeDomainSummary], pods: PodCountsOfSet
) -> Iterator[DomainProblem]:
    """Domains without all of their nodes or pods."""
    by_phase: dict[str, list[ResolvedDomain]] = {}
    for domain, summary in zip(domains, summaries, strict=True):
        by_phase.setdefault(summary.phase, []).append(domain)
    for phase, reason in (
        (DomainPhase.DEGRADED, Reason.DEGRADED),
        (DomainPhase.FORMING, Reason.NODES_NOT_READY),
    ):
        if found := by_phase.get(phase):
            yield DomainProblem(reason, name_list([node_counts(one) for one in found], separator="; "))
    if missing := by_phase.get(DomainPhase.MISSING):
        message = f"{_cliques(missing)} waits for {_names(missing)}, which does not exist yet"
        yield DomainProblem(Reason.WAITING_FOR_PODS, message)
    if pending := by_phase.get(DomainPhase.PENDING):
        yield DomainProblem(Reason.WAITING_FOR_PODS, f"no pod of {_names(pending)} has a node yet")
    whole = (*by_phase.get(DomainPhase.READY, ()), *by_phase.get(DomainPhase.DEGRADED, ()))
    waiting = [
        f"{one.name}: {count.scheduled} of {count.wanted} pods have a node"
        for one in whole
        if (count := pods.waiting(one)) and not pods.exceeds_channels(one)
    ]
    if waiting:
        yield DomainProblem(Reason.PODS_WAITING, name_list(waiting, separator="; "))


_UNFINISHED = (DomainState.MISSING, DomainState.NOT_OWNED_YET)
_ERROR_STATES = (
    (DomainState.NOT_SERVED, Reason.CRD_MISSING),
    (DomainState.OUTDATED, Reason.CRD_OUTDATED),
    (DomainState.CONFLICT, Reason.NAME_CONFLICT),
    (DomainState.TEMPLATE_CONFLICT, Reason.NAME_CONFLICT),
    (DomainState.TERMINATING, Reason.TERMINATING),
)


def _cliques(domains: Sequence[ResolvedDomain]) -> str:
    names = dict.fromkeys(name for one in domains for name in one.membership.cliques)
    return f"clique {name_list(list(names))}"


def _names(domains: Sequence[ResolvedDomain]) -> str:
    return name_list([one.name for one in domains])
