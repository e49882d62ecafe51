"""How the fabric domains of a set fare, in its status: a line for each, and the condition
`ComputeDomainsReady`. For people only: no decision depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.parts import LastError
from grove.api.sets import ComputeDomainSummary, PodCliqueSet, PodCliqueSetStatus
from grove.fabrics.places import Stay
from grove.fabrics.provider import Domain, DomainView, FabricDomainProvider
from grove.plan import facts
from grove.plan.domain_states import State, trouble

_MOST_NAMED = 3


class Phase(StrEnum):
    """Where a domain is in its life."""

    MISSING = "Missing"
    PENDING = "Pending"
    FORMING = "Forming"
    READY = "Ready"
    DEGRADED = "Degraded"
    TERMINATING = "Terminating"
    CONFLICT = "Conflict"


class DomainNote(Struct, frozen=True):
    """A domain that a set is in, or is to be in."""

    name: str
    provider: FabricDomainProvider
    stay: Stay
    state: State
    found: Domain | None = None
    failure: LastError | None = None
    """Why it could not be made."""
    template: str = ""
    """By which its pods take their places."""
    busy: str = ""
    """Who has the nodes that its pods wait for."""
    nodes: frozenset[str] = frozenset()
    """The nodes that its pods are on: each of them should be in the domain."""


def with_domains(
    status: PodCliqueSetStatus, workload: PodCliqueSet, notes: Sequence[DomainNote], now: float
) -> PodCliqueSetStatus:
    """The status of a set with what there is to say about its domains."""
    if not notes:
        conditions = facts.without(status.conditions, ConditionType.COMPUTE_DOMAINS_READY)
        return replace(status, compute_domains=(), conditions=conditions)
    known = {summary.name: summary for summary in workload.status.compute_domains}
    summaries = tuple(_summary(note, known.get(note.name)) for note in notes)
    told = replace(_condition(notes, summaries), observed_generation=workload.metadata.generation)
    return replace(
        status, compute_domains=summaries, conditions=facts.settle(status.conditions, (told,), now)
    )


def failures(notes: Sequence[DomainNote]) -> tuple[LastError, ...]:
    """Why domains could not be made."""
    return tuple(note.failure for note in notes if note.failure is not None)


def _summary(note: DomainNote, known: ComputeDomainSummary | None) -> ComputeDomainSummary:
    view = note.provider.observe(note.found) if note.found is not None else DomainView()
    view = replace(view, total_nodes=max(view.total_nodes, len(note.nodes.union(view.nodes))))
    return ComputeDomainSummary(
        name=note.name,
        mode=note.stay.demand.mode.value,
        replica_indices=note.stay.replicas,
        uid=note.found.metadata.uid if note.found is not None else "",
        phase=_phase(note, view, known).value,
        ready_nodes=view.ready_nodes,
        total_nodes=view.total_nodes,
        clique_ids=view.partitions,
    )


def _phase(note: DomainNote, view: DomainView, known: ComputeDomainSummary | None) -> Phase:
    special = {
        State.TERMINATING: Phase.TERMINATING,
        State.CONFLICT: Phase.CONFLICT,
        State.TEMPLATE_TAKEN: Phase.CONFLICT,
    }
    if note.state in special:
        return special[note.state]
    if note.found is None or note.state is State.UNSERVED:
        return Phase.MISSING
    if not view.total_nodes:
        return Phase.PENDING
    if view.ready_nodes == view.total_nodes:
        return Phase.READY
    was_ready = known is not None and known.phase in (Phase.READY, Phase.DEGRADED)
    same = known is not None and known.uid == note.found.metadata.uid
    return Phase.DEGRADED if was_ready and same else Phase.FORMING


def _condition(notes: Sequence[DomainNote], summaries: Sequence[ComputeDomainSummary]) -> Condition:
    """The worst comes first; a split fabric is said beside whatever else there is to say."""
    type_ = ConditionType.COMPUTE_DOMAINS_READY
    for state, reason in _TROUBLES:
        if found := [note for note in notes if note.state is state]:
            words = trouble(state, found[0].provider, _names(found), _listed([one.template for one in found]))
            return facts.fact(type_, False, reason, words)
    if failed := [note for note in notes if note.failure is not None]:
        words = f"{_names(failed)} could not be made: {failures(failed)[0].description}"
        return facts.fact(type_, False, Reason.CREATE_FAILED, words)
    waiting = [one for one in summaries if one.phase in (Phase.MISSING, Phase.PENDING)]
    forming = [one for one in summaries if one.phase in (Phase.FORMING, Phase.DEGRADED)]
    more = _joined(_split(summaries), *(note.busy for note in notes))
    if forming:
        words = ", ".join(f"{one.name}: {one.ready_nodes}/{one.total_nodes} nodes ready" for one in forming)
        return facts.fact(type_, False, Reason.NODES_NOT_READY, _joined(words, more))
    if waiting:
        words = f"no pod of {_names(waiting)} has a node yet"
        return facts.fact(type_, False, Reason.WAITING_FOR_PODS, _joined(words, more))
    words = f"{len(summaries)} of {len(summaries)} domains are ready"
    return facts.fact(type_, True, Reason.ALL_READY, _joined(words, more))


_TROUBLES = (
    (State.UNSERVED, Reason.CRD_MISSING),
    (State.CONFLICT, Reason.NAME_CONFLICT),
    (State.TEMPLATE_TAKEN, Reason.NAME_CONFLICT),
    (State.TERMINATING, Reason.TERMINATING),
)


def _split(summaries: Sequence[ComputeDomainSummary]) -> str:
    return "; ".join(
        f"{one.name} is split over {len(one.clique_ids)} partitions: {', '.join(one.clique_ids)}"
        for one in summaries
        if len(one.clique_ids) > 1
    )


def _joined(*words: str) -> str:
    return "; ".join(filter(None, words))


def _names(named: Sequence[DomainNote] | Sequence[ComputeDomainSummary]) -> str:
    return _listed([one.name for one in named])


def _listed(listed: Sequence[str]) -> str:
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
