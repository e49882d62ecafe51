"""One round of placement: takes over what has changed in the cluster, decides on gangs one after another, and
releases gangs whose nominations hold.

Gangs are decided on in the order of their priority, and of the age of their PodGangs. A gang that does not
fit does not block later ones, until nodes are held for it (see `hold`). Gangs that are not released yet give
way to gangs of a higher priority, and holds also to lost pods of gangs that run. Pods beyond the minimum of
their cliques come after the minimum of every gang.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from grove import timing
from grove.api.naming.well_known import HOSTNAME
from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.completion import completed, completion_limit
from grove.plan.placement.decision import Circumstances, decide, reservations
from grove.plan.placement.demand import Demand
from grove.plan.placement.hold import grant_holds, keep_hold
from grove.plan.placement.release import Backlog, nominations_observed, outdated_nominations, remaining
from grove.plan.placement.renewal import next_renewal, renewed
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang, RoundResult


def run_round(capacity: ClusterCapacity, changes: ClusterChanges, now: float) -> RoundResult:
    """Decide on all gangs that have no decision or wait, and release those that can be."""
    freed = capacity.observe(changes.nodes) or bool(changes.gone)
    for name in changes.gone:
        capacity.reserve(name, {})
    changes = replace(changes, freed=freed)
    for gang in changes.gangs:
        _reserve(capacity, gang)
    before = {each.state.demand.gang: each.state for each in changes.gangs}
    states = dict(before)
    waiting = {name for name, state in before.items() if state.waits and state.fits_if_empty}
    order = sorted(changes.gangs, key=lambda each: (-each.priority, *each.state.order))
    for gang in order:
        name = gang.state.demand.gang
        waiting.discard(name)
        state = _next_after_others_give_way(capacity, gang, changes, states, bool(waiting), now)
        state = states[name] = keep_hold(capacity, gang, state, now)
        if state.waits and state.fits_if_empty:
            waiting.add(name)
    for gang in order:
        name = gang.state.demand.gang
        states[name] = _with_extras(capacity, gang, states[name], changes, bool(waiting), now)
    ended = any(state.hold is not None and states[name].hold is None for name, state in before.items())
    states |= grant_holds(capacity, changes, states, now, ended=ended)
    states = {name: renewed(state, changes.scheduler, now) for name, state in states.items()}
    changed = {name: state for name, state in states.items() if state != before[name]}
    times = [*_times(states.values(), changes, now)]
    if any(_is_nominated_already(gang, changed.get(gang.state.demand.gang)) for gang in order):
        times.append(now)
    return RoundResult(changed, min(times, default=None))


def _is_nominated_already(gang: ObservedGang, changed: GangState | None) -> bool:
    """Whether the pods of a gang have the nominations that were decided just now, from an earlier decision or
    another process: no event will follow."""
    if changed is None or changed.backlog is not None:
        return False
    decision = changed.decision
    return (
        isinstance(decision, Assignment)
        and decision.gated
        and nominations_observed(changed.demand, decision, lambda name: gang.nominations.get(name, ""))
    )


def _reserve(capacity: ClusterCapacity, gang: ObservedGang) -> None:
    """Renew the reservations of a gang: those of bound pods have ended, and the scheduler may have nominated
    a released pod to another node."""
    state = gang.state
    chosen = state.decision if isinstance(state.decision, Assignment) else state.hold
    if chosen is None:
        return
    released = isinstance(chosen, Assignment) and not chosen.gated
    nominations = gang.nominations if released else {}
    unbound = {pod.slot: pod.name for pod in state.demand.unbound if pod.name not in gang.bound}
    nodes = {
        slot: nominations.get(unbound[slot], node)
        for slot, node in chosen.nodes.items()
        if slot in unbound and node
    }
    capacity.reserve(state.demand.gang, reservations(state.demand, gang.requests, nodes))


def _next_after_others_give_way(
    capacity: ClusterCapacity,
    gang: ObservedGang,
    changes: ClusterChanges,
    states: Mapping[GangName, GangState],
    others_wait: bool,
    now: float,
) -> GangState:
    """The next state of a gang. If there is no room for it otherwise, it takes the nodes of gangs that give
    way to it: they are decided on again. That is better than to preempt pods that run."""
    decided = isinstance(gang.state.decision, Assignment)
    rivals = [] if decided else [each for each in changes.gangs if _gives_way(each, gang, states)]
    if not rivals:
        return _next_state(capacity, gang, changes, others_wait, now)
    state = _next_state(capacity, replace(gang, may_preempt=False), changes, others_wait, now)
    if not state.waits:
        return state
    with _without_reservations(capacity, rivals, states):
        return _next_state(capacity, gang, changes, others_wait, now)


def _gives_way(rival: ObservedGang, gang: ObservedGang, states: Mapping[GangName, GangState]) -> bool:
    """Whether a gang that is not released gives way to another one: to a higher priority, and a hold also to
    a gang that has lost pods."""
    state = states[rival.state.demand.gang]
    if rival is gang or not state.nominations:
        return False
    if state.waits and any(pod.node for pod in gang.state.demand.pods):
        return rival.priority <= gang.priority
    return rival.priority < gang.priority


@contextmanager
def _without_reservations(
    capacity: ClusterCapacity, gangs: Sequence[ObservedGang], states: Mapping[GangName, GangState]
) -> Iterator[None]:
    for gang in gangs:
        capacity.reserve(gang.state.demand.gang, {})
    yield
    for gang in gangs:
        _reserve(capacity, replace(gang, state=states[gang.state.demand.gang]))


def _next_state(
    capacity: ClusterCapacity, gang: ObservedGang, changes: ClusterChanges, others_wait: bool, now: float
) -> GangState:
    state = gang.state
    match state.decision:
        case Assignment(nominated=True, released=False):
            return _nominated(capacity, gang, changes, others_wait, now)
        case Assignment():
            return completed(gang, now)
        case Waiting() if state.hold is None and not _is_decided_again(state, changes, now):
            return state
        case _:
            return _decided(capacity, gang, changes, others_wait, now)


def _decided(
    capacity: ClusterCapacity, gang: ObservedGang, changes: ClusterChanges, others_wait: bool, now: float
) -> GangState:
    state, given = gang.state, _circumstances(gang, changes, others_wait, now)
    since = state.since or now
    found = decide(capacity, state.demand, given, minimum_only=True)
    fits_if_empty = found.fits_if_empty
    for fallback in state.demand.fallbacks:
        if isinstance(found.decision, Assignment) or now < since + fallback.after:
            break
        found = decide(capacity, state.demand.by(fallback), given, minimum_only=True)
        fits_if_empty = fits_if_empty or found.fits_if_empty
    if isinstance(found.decision, Assignment):
        # A gang that is not released may have to wait again: its time to wait goes on.
        return replace(
            state, decision=found.decision, since=since if found.decision.gated else 0.0, backlog=None
        )
    if _is_incomplete(state.demand, changes) and now >= since + timing.HALF_BOUND_LIMIT:
        failed = Assignment(attempt=state.demand.attempt, pins=state.demand.pinned, failed=True)
        return replace(state, decision=failed, since=0.0, backlog=None)
    if _is_released_unplaced(state.demand, changes, since, now):
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
    )


def _circumstances(
    gang: ObservedGang, changes: ClusterChanges, others_wait: bool, now: float
) -> Circumstances:
    state = gang.state
    return Circumstances(
        gang.priority,
        gang.may_preempt,
        gang.requests,
        changes.unbound,
        others_wait or bool(state.failures),
        gang.has_quota,
        {domain: "an earlier attempt failed there" for domain, until in state.failed.items() if until > now},
        timing.PLACEMENT_WORK * (timing.PLACEMENT_RETRY_WORK if state.retry_at else 1),
    )


def _with_extras(
    capacity: ClusterCapacity,
    gang: ObservedGang,
    state: GangState,
    changes: ClusterChanges,
    others_wait: bool,
    now: float,
) -> GangState:
    """The state of a gang with nodes for pods beyond the minimum, as many as there is room for. They are
    decided on together with the minimum, or later once no other pod of the gang waits for its node."""
    assignment = state.decision
    if not isinstance(assignment, Assignment) or assignment.failed or assignment.in_part:
        return state
    unbound = {pod.slot for pod in state.demand.unbound if pod.name not in gang.bound}
    missing = unbound - assignment.nodes.keys()
    is_new = assignment is not gang.state.decision
    if not missing or (not is_new and len(missing) < len(unbound)):
        return state
    demand = state.demand.by_attempt(assignment.attempt)
    found = decide(capacity, demand, _circumstances(gang, changes, others_wait, now)).decision
    if isinstance(found, Assignment) and not missing.isdisjoint(found.nodes):
        return replace(state, decision=found)
    nodes = {slot: node for slot, node in assignment.nodes.items() if slot in unbound and node}
    capacity.reserve(demand.gang, reservations(demand, gang.requests, nodes))
    return state


def _nominated(
    capacity: ClusterCapacity, gang: ObservedGang, changes: ClusterChanges, others_wait: bool, now: float
) -> GangState:
    """A gang whose pods are nominated: released, decided again after a conflict, or unchanged."""
    state, assignment = gang.state, gang.state.decision
    assert isinstance(assignment, Assignment)
    below = gang.priority if assignment.preempts else None
    if capacity.over_committed(state.demand.gang, below):
        return _decided(capacity, gang, changes, others_wait, now)
    if any(
        assignment.nodes.get(pod.slot) == pod.predecessor for pod in state.demand.unbound if pod.predecessor
    ):
        return replace(state, backlog=None)
    if not nominations_observed(state.demand, assignment, lambda name: gang.nominations.get(name, "")):
        return replace(state, backlog=None) if state.backlog is not None else state
    backlog = state.backlog or Backlog(now, gang.in_flight)
    expired = now >= backlog.since + timing.NOMINATION_LIMIT
    if not (remaining(backlog, gang.in_flight) and not expired) and not _in_the_way(gang, changes.gangs):
        # What is undecided after so long was not in flight: the scheduler counts the nominations when it
        # considers these pods.
        hosts = _hosts(capacity, gang)
        released = replace(assignment, released=True, hosts=hosts, preempting=bool(hosts))
        return replace(state, decision=released, since=0.0, backlog=None)
    return _decided(capacity, gang, changes, others_wait, now) if expired else replace(state, backlog=backlog)


def _in_the_way(gang: ObservedGang, others: Iterable[ObservedGang]) -> bool:
    """Whether pods of another gang are still nominated to the nodes of a gang, which were given to it since:
    the scheduler counts nominations of the same or a higher priority."""
    nodes = set(gang.state.nominations.values())
    return any(
        other is not gang
        and other.priority >= gang.priority
        and not nodes.isdisjoint(
            outdated_nominations(other.state.demand, other.state.decision, other.nominations)
        )
        for other in others
    )


def _hosts(capacity: ClusterCapacity, gang: ObservedGang) -> dict[PodSlot, str]:
    """The hostnames of the nodes on which pods must be preempted for a gang that is about to start."""
    assignment, demand = gang.state.decision, gang.state.demand
    assert isinstance(assignment, Assignment)
    if not assignment.preempts or demand.was_scheduled:
        return {}
    index, occupied = capacity.index(demand.levels), capacity.occupied(demand.gang)
    hostnames = {name: index.node(index.ids[name]).labels.get(HOSTNAME, "") for name in occupied}
    return {slot: host for slot, node in assignment.nodes.items() if (host := hostnames.get(node))}


def after_failure(state: GangState, demand: Demand, now: float) -> GangState:
    """The state of a gang that starts over: the domain of the failed attempt, or the cluster if the gang may
    use any node, is excluded for a while."""
    assert isinstance(state.decision, Assignment)
    first, longest = timing.FAILED_DOMAIN_BACKOFF
    pause = min(longest, first * 2 ** min(state.failures, timing.FAILED_DOMAIN_DOUBLINGS))
    failed = {each: until for each, until in state.failed.items() if until > now}
    failed[state.decision.domain] = now + pause
    return GangState(demand, failed=failed, failures=state.failures + 1)


def _is_incomplete(demand: Demand, changes: ClusterChanges) -> bool:
    """Whether a gang that has never run as a whole has bound pods: it must not stay so, unless it may have
    been released in part."""
    never_in_part = demand.constrained or changes.visible_after is None
    return never_in_part and not demand.was_scheduled and any(pod.node for pod in demand.pods)


def _is_decided_again(state: GangState, changes: ClusterChanges, now: float) -> bool:
    """Whether a gang that waits may find a place: something has become free, or another rule applies now."""
    if now < state.retry_at:
        return False
    times = [state.since + fallback.after for fallback in state.demand.fallbacks]
    times += state.failed.values()
    if changes.visible_after is not None:
        times.append(state.since + changes.visible_after)
    if _is_incomplete(state.demand, changes):
        times.append(state.since + timing.HALF_BOUND_LIMIT)
    return changes.freed or bool(state.retry_at) or any(state.decided_at < at <= now for at in times)


def _is_released_unplaced(demand: Demand, changes: ClusterChanges, since: float, now: float) -> bool:
    visible_after = changes.visible_after
    return visible_after is not None and not demand.constrained and now >= since + visible_after


def _times(states: Iterable[GangState], changes: ClusterChanges, now: float) -> Iterable[float]:
    for state in states:
        if state.backlog is not None:
            yield state.backlog.since + timing.NOMINATION_LIMIT
        if (limit := completion_limit(state)) is not None:
            yield max(now, limit)
        if state.waits and _is_incomplete(state.demand, changes):
            yield max(now, state.since + timing.HALF_BOUND_LIMIT)
        yield from (until for until in state.failed.values() if state.waits and until > now)
        if state.waits and state.retry_at:
            yield max(now, state.retry_at)
        if state.waits:
            tried = (state.since + fallback.after for fallback in state.demand.fallbacks)
            yield from (at for at in tried if at > now)
        if state.waits and changes.visible_after is not None and not state.demand.constrained:
            yield max(now, state.since + changes.visible_after)
        if state.waits and state.fits_if_empty and changes.hold_after < math.inf:
            yield state.hold.until if state.hold else max(state.since + changes.hold_after, state.hold_from)
        if changes.scheduler == "" and state.nominations:
            yield next_renewal(state) or now
