"""The next state of one gang in a round: decided, nominated, released, or unchanged."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.naming.well_known import HOSTNAME
from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import Circumstances, Decided, decide, usable_by
from grove.plan.placement.demand import Demand, pod_name
from grove.plan.placement.domain_members import DomainMembers
from grove.plan.placement.pins import pinned_domain
from grove.plan.placement.release import new_backlog, nominations_observed, remaining
from grove.plan.placement.rounds.completion import completed
from grove.plan.placement.rounds.rivals import OutdatedNominations
from grove.plan.placement.rounds.turns import Turns
from grove.plan.placement.slack import PodsInFlight, pods_in_flight
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang
from grove.reasons.placement import search_failed
from grove.topology.placement.refusals import Refusals


class Round(Struct, frozen=True, eq=False):
    """What all decisions of a round share."""

    capacity: ClusterCapacity
    changes: ClusterChanges
    now: float
    in_flight: PodsInFlight
    outdated: OutdatedNominations
    refusals: Refusals
    members: DomainMembers
    turns: Turns
    unexpected: dict[GangName, Exception]
    """The errors of decisions that are bugs, by gang."""


def begin(capacity: ClusterCapacity, changes: ClusterChanges, now: float) -> Round:
    """A round, once the capacity has taken over the changes."""
    in_flight, outdated = pods_in_flight(changes.unbound), OutdatedNominations(changes.gangs)
    members = DomainMembers(changes.domain_nodes, changes.assigned_in_domains)
    turns = Turns(changes.gangs, changes.work, now)
    return Round(capacity, changes, now, in_flight, outdated, Refusals(), members, turns, {})


def next_state(current: Round, gang: ObservedGang, others_wait: bool) -> GangState:
    """The next state of a gang. `others_wait`: whether another gang waits for nodes."""
    state = gang.state
    match state.decision:
        case Assignment(nominated=True, released=False):
            return _nominated(current, gang, others_wait)
        case Assignment():
            return completed(gang, current.now)
        case _ if asks_again(current, state):
            return _decided(current, gang, others_wait)
        case _ if state.waits and _is_overdue(state, current):
            return _started_over(current, state)  # its search was stopped, and is not repeated yet
        case _:
            return state


def asks_again(current: Round, state: GangState) -> bool:
    """Whether a gang without a place is decided on."""
    if not state.waits:
        return True
    if state.retry_at and state.hold is None:
        return current.turns.retried == state.demand.gang
    if state.hold is not None:
        return not state.retry_at or current.changes.freed or current.turns.retried == state.demand.gang
    return bool(state.postponed) or _is_decided_again(state, current.changes, current.now)


def _decided(current: Round, gang: ObservedGang, others_wait: bool) -> GangState:
    state, now = gang.state, current.now
    if not current.turns.admit(state.demand.gang):
        return state
    given, since = circumstances(current, gang, others_wait), state.since or now
    found = decide_or_wait(current, state.demand, given, minimum_only=True)
    fits_if_empty = found.fits_if_empty
    for fallback in state.demand.fallbacks:
        if isinstance(found.decision, Assignment) or now < since + fallback.after:
            break
        demand = state.demand.by(fallback)
        found = decide_or_wait(current, demand, given, minimum_only=True)
        fits_if_empty = fits_if_empty or found.fits_if_empty
    if isinstance(found.decision, Assignment):
        # A gang that is not released may have to wait again: its time to wait goes on.
        return replace(
            state,
            decision=found.decision,
            since=since if found.decision.gated else 0.0,
            decided_at=now,
            backlog=None,
            retry_at=0.0,
        )
    if _is_overdue(state, current):
        return _started_over(current, state)
    visible_at = released_unplaced_at(state, current.changes, since, now)
    if visible_at is not None and now >= visible_at:
        nodes = {pod.slot: "" for pod in state.demand.unbound}
        return replace(state, decision=Assignment(nodes=nodes, in_part=True), since=0.0, backlog=None)
    return replace(
        state,
        decision=found.decision,
        fits_if_empty=fits_if_empty,
        since=since,
        decided_at=now,
        backlog=None,
        retry_at=now + timing.PLACEMENT_RETRY if found.decision.gave_up else 0.0,
        retried_at=now if current.turns.retried == state.demand.gang else state.retried_at,
    )


def decide_or_wait(
    current: Round, demand: Demand, given: Circumstances, *, minimum_only: bool = False
) -> Decided:
    """The decision for a gang. After an error that is a bug it waits, and is decided on again later: all
    other gangs, also those of other users, must get their nodes."""
    try:
        return decide(current.capacity, demand, given, current.refusals, minimum_only=minimum_only)
    except Exception as bug:
        current.capacity.reserve(demand.gang, {})
        current.unexpected[demand.gang] = bug
        reason = search_failed(bug)
        # Nothing is held for it, and no other gang is nominated because of it.
        return Decided(Waiting(reason.message, gave_up=True, reason=reason), fits_if_empty=False)


def _is_overdue(state: GangState, current: Round) -> bool:
    """Whether a gang that must not run in part has bound pods, and no place for the others, for too long."""
    since = state.since or current.now
    return is_incomplete(state.demand, current.changes) and current.now >= since + timing.HALF_BOUND_LIMIT


def _started_over(current: Round, state: GangState) -> GangState:
    return replace(
        state, decision=_failed(current.capacity, state.demand), since=0.0, backlog=None, retry_at=0.0
    )


def _failed(capacity: ClusterCapacity, demand: Demand) -> Assignment:
    """The end of an attempt of which pods are bound. The back-off is that of the domain it was pinned to."""
    domain = pinned_domain(capacity.index(demand.levels), demand.unit, demand.pinned)
    return Assignment(attempt=demand.attempt, pins=demand.pinned, domain=domain or (), failed=True)


def circumstances(current: Round, gang: ObservedGang, others_wait: bool) -> Circumstances:
    """What a decision on a gang depends on."""
    state, now, name = gang.state, current.now, gang.state.demand.gang
    return Circumstances(
        gang.priority,
        gang.may_preempt,
        gang.requests,
        current.in_flight,
        others_wait or bool(state.failures),
        gang.has_quota,
        {domain: "an earlier attempt failed there" for domain, until in state.failed.items() if until > now},
        current.turns.limit(name),
        current.members.of(state.demand),
        current.turns.meter(name),
    )


def _nominated(current: Round, gang: ObservedGang, others_wait: bool) -> GangState:
    """A gang whose pods are nominated: released, decided again after a conflict, or unchanged."""
    state, assignment, now = gang.state, gang.state.decision, current.now
    assert isinstance(assignment, Assignment)
    below = gang.priority if assignment.preempts else None
    if current.capacity.over_committed(state.demand.gang, usable_by(state.demand, assignment.nodes), below):
        return _decided(current, gang, others_wait)
    if any(
        assignment.nodes.get(pod.slot) == pod.predecessor for pod in state.demand.unbound if pod.predecessor
    ):
        return replace(state, backlog=None)
    if not nominations_observed(state.demand, assignment, lambda name: gang.nominations.get(name, "")):
        return replace(state, backlog=None) if state.backlog is not None else state
    backlog = remaining(state.backlog or new_backlog(gang.in_flight, now), gang.in_flight, now)
    expired = backlog.expired(now)
    if (expired or not backlog.pods) and not current.outdated.in_the_way(gang):
        hosts = _hosts(current.capacity, gang)
        # The scheduler considers no pod of a group before the minimum of the group is released.
        preempting = bool(hosts) and not state.demand.grouped
        released = replace(assignment, released=True, hosts=hosts, preempting=preempting)
        return replace(state, decision=released, since=0.0, backlog=None)
    return _decided(current, gang, others_wait) if expired else replace(state, backlog=backlog)


def _hosts(capacity: ClusterCapacity, gang: ObservedGang) -> dict[PodSlot, str]:
    """The hostnames of the nodes on which pods must be preempted for a gang that is about to start. Pods
    beyond the minimum may go elsewhere: the gang does not start over if one of them finds no node."""
    assignment, demand = gang.state.decision, gang.state.demand
    assert isinstance(assignment, Assignment)
    if not assignment.preempts or demand.was_scheduled:
        return {}
    index, occupied = capacity.index(demand.levels), capacity.occupied(demand.gang)
    hostnames = {name: index.node(index.ids[name]).labels.get(HOSTNAME, "") for name in occupied}
    extras = demand.extras
    return {
        slot: host
        for slot, node in assignment.nodes.items()
        if (host := hostnames.get(node)) and pod_name(slot) not in extras
    }


def after_failure(state: GangState, demand: Demand, now: float) -> GangState:
    """The state of a gang that starts over: the domain of the failed attempt, or the cluster if the gang may
    use any node, is excluded for a while."""
    assert isinstance(state.decision, Assignment)
    first, longest = timing.FAILED_DOMAIN_BACKOFF
    pause = min(longest, first * 2 ** min(state.failures, timing.FAILED_DOMAIN_DOUBLINGS))
    failed = {each: until for each, until in state.failed.items() if until > now}
    failed[state.decision.domain] = now + pause
    return GangState(demand, failed=failed, failures=state.failures + 1)


def is_incomplete(demand: Demand, changes: ClusterChanges) -> bool:
    """Whether a gang that has never run as a whole has bound pods: it must not stay so, unless it may have
    been released in part."""
    never_in_part = demand.constrained or changes.visible_after is None
    return never_in_part and not demand.was_scheduled and any(pod.node for pod in demand.pods)


def _is_decided_again(state: GangState, changes: ClusterChanges, now: float) -> bool:
    """Whether a gang that waits may find a place: something has become free, or another rule applies now."""
    times = [state.since + fallback.after for fallback in state.demand.fallbacks]
    times += state.failed.values()
    if changes.visible_after is not None:
        times.append(state.since + changes.visible_after)
    if is_incomplete(state.demand, changes):
        times.append(state.since + timing.HALF_BOUND_LIMIT)
    return changes.freed or any(state.decided_at < at <= now for at in times)


def released_unplaced_at(state: GangState, changes: ClusterChanges, since: float, now: float) -> float | None:
    """When a gang that has waited since a time is released although it does not fit; None: not at present.
    While a domain is excluded after a failure, it is not known whether the gang fits."""
    excluded = any(until > now for until in state.failed.values())
    if changes.visible_after is None or state.demand.constrained or excluded:
        return None
    return since + changes.visible_after
