"""One round of placement: takes over what has changed in the cluster, decides on gangs one after another, and
releases gangs whose nominations hold.

Gangs are decided on in the order of their priority, and of the age of their PodGangs. A gang that does not
fit does not block later ones, until nodes are held for it (see `hold`). Gangs that are not released yet give
way to gangs of a higher priority, and holds also to replacements of pods that ran where they are: these go
first. Pods beyond the minimum of their cliques come after the minimum of every gang.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import reservations
from grove.plan.placement.release import nominations_observed
from grove.plan.placement.rounds.completion import completion_limit
from grove.plan.placement.rounds.hold import grant_holds, keep_hold
from grove.plan.placement.rounds.next_state import (
    Round,
    asks_again,
    begin,
    circumstances,
    decide_or_wait,
    is_incomplete,
    next_state,
    released_unplaced_at,
)
from grove.plan.placement.rounds.renewal import next_renewal, renewed
from grove.plan.placement.rounds.rivals import Rivals
from grove.plan.placement.rounds.turns import in_turn, next_retry_at
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang, RoundResult


def run_round(capacity: ClusterCapacity, changes: ClusterChanges, now: float) -> RoundResult:
    """Decide on all gangs that have no decision or wait, and release those that can be."""
    freed = capacity.observe(changes.nodes) or bool(changes.gone)
    for name in changes.gone:
        capacity.reserve(name, {})
    changes = replace(changes, freed=freed)
    for gang in changes.gangs:
        _reserve(capacity, gang)
    current, rivals = begin(capacity, changes, now), Rivals(changes.gangs)
    before = {each.state.demand.gang: each.state for each in changes.gangs}
    states = dict(before)
    waiting = {name for name, state in before.items() if state.waits and state.fits_if_empty}
    order = in_turn(changes.gangs, lambda each: _order(each, rivals), current.turns.retried)
    for gang in order:
        name = gang.state.demand.gang
        waiting.discard(name)
        state = _next_after_others_give_way(current, gang, rivals, bool(waiting))
        state = states[name] = keep_hold(capacity, gang, state, now)
        current.members.assign(state.demand, state.decision)
        rivals.update(gang, state)
        if state.waits and state.fits_if_empty:
            waiting.add(name)
    for gang in order:
        name = gang.state.demand.gang
        states[name] = _with_extras(current, gang, states[name], bool(waiting))
    ended = any(state.hold is not None and states[name].hold is None for name, state in before.items())
    states |= grant_holds(current, states, ended=ended)
    states = {
        name: _postponed(renewed(state, changes.scheduler, now), current) for name, state in states.items()
    }
    changed = {name: state for name, state in states.items() if _differs(state, before[name])}
    times = [*_times(states.values(), changes, now)]
    times += (gang.victims_leave_until for gang in order if gang.victims_leave_until > now)
    if any(_is_nominated_already(gang, changed.get(gang.state.demand.gang)) for gang in order):
        times.append(now)
    if current.turns.postponed:
        times.append(now)
    wait = waiting or any(state.extras_refused is not None for state in states.values())
    if wait and any(_gives_up_nodes(before[name], state) for name, state in changed.items()):
        capacity.mark_freed()
        times.append(now)
    return RoundResult(changed, min(times, default=None), current.unexpected)


def _order(gang: ObservedGang, rivals: Rivals) -> tuple[Any, ...]:
    """By priority, then by age; replacements of pods in a domain that is held go first."""
    state = gang.state
    holds = state.hold is not None and state.demand.replaces_pods
    first = holds or next(rivals.holds_before(gang), None) is not None
    return -gang.priority, not first, *state.order


def _postponed(state: GangState, current: Round) -> GangState:
    """The state of a gang, with the time since when it is to be decided on if no work was left for it."""
    since = (state.postponed or current.now) if state.demand.gang in current.turns.postponed else 0.0
    return replace(state, postponed=since) if state.postponed != since else state


def _differs(state: GangState, before: GangState) -> bool:
    return state is not before and state != before


def _gives_up_nodes(before: GangState, after: GangState) -> bool:
    """Whether a gang has lost or left nodes that were reserved for it: no event will follow."""
    return not _reserved(before).items() <= _reserved(after).items()


def _reserved(state: GangState) -> Mapping[PodSlot, str]:
    chosen = state.decision if isinstance(state.decision, Assignment) else state.hold
    return chosen.nodes if chosen is not None else {}


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
    current: Round, gang: ObservedGang, rivals: Rivals, others_wait: bool
) -> GangState:
    """The next state of a gang. If there is no room for it otherwise, it takes the nodes of gangs that give
    way to it: they are decided on again. That is better than to preempt pods that run."""
    decision = gang.state.decision
    if isinstance(decision, Assignment) and decision.gated:
        # Holds are not in the way of nodes that their predecessors have left.
        with current.capacity.without(rivals.holds_before(gang)):
            return next_state(current, gang, others_wait)
    decided = isinstance(decision, Assignment)
    if decided or next(rivals.of(gang), None) is None or not asks_again(current, gang.state):
        return next_state(current, gang, others_wait)
    state = next_state(current, replace(gang, may_preempt=False), others_wait)
    if not state.waits:
        return state
    with current.capacity.without(rivals.of(gang)):
        return next_state(current, gang, others_wait)


def _with_extras(current: Round, gang: ObservedGang, state: GangState, others_wait: bool) -> GangState:
    """The state of a gang with nodes for pods beyond the minimum, as many as there is room for. They are
    decided on together with the minimum, or later once no other pod of the gang waits for its node: when they
    are others than before, or something has become free."""
    assignment = state.decision
    if not isinstance(assignment, Assignment) or assignment.failed or assignment.in_part:
        return state
    unbound = {pod.slot for pod in state.demand.unbound if pod.name not in gang.bound}
    missing = unbound - assignment.nodes.keys()
    is_new = assignment is not gang.state.decision
    if not missing or (not is_new and len(missing) < len(unbound)):
        return state
    known = not current.changes.freed and not state.postponed and state.extras_refused == state.demand
    if (not is_new and known) or not current.turns.admit(state.demand.gang):
        return state
    demand = state.demand.by_attempt(assignment.attempt)
    given = circumstances(current, gang, others_wait)
    found = decide_or_wait(current, demand, given).decision
    if isinstance(found, Assignment) and not missing.isdisjoint(found.nodes):
        return replace(state, decision=found, extras_refused=None)
    nodes = {slot: node for slot, node in assignment.nodes.items() if slot in unbound and node}
    current.capacity.reserve(demand.gang, reservations(demand, gang.requests, nodes))
    gave_up = isinstance(found, Waiting) and found.gave_up
    return replace(state, extras_refused=None if gave_up else state.demand)


def _times(states: Collection[GangState], changes: ClusterChanges, now: float) -> Iterable[float]:
    retry_from = next_retry_at(states)
    for state in states:
        if state.backlog is not None:
            yield state.backlog.expires_at
        # A limit that is over has had its effect, or has it with the next change of a pod.
        if (limit := completion_limit(state)) is not None and limit > now:
            yield limit
        if state.waits and is_incomplete(state.demand, changes):
            yield state.since + timing.HALF_BOUND_LIMIT
        yield from (until for until in state.failed.values() if state.waits and until > now)
        if state.waits and state.retry_at:
            yield max(state.retry_at, retry_from)
        if state.waits:
            tried = (state.since + fallback.after for fallback in state.demand.fallbacks)
            yield from (at for at in tried if at > now)
        if state.waits and (at := released_unplaced_at(state, changes, state.since, now)) is not None:
            yield max(now, at)
        if state.waits and state.fits_if_empty and changes.hold_after < math.inf:
            yield state.hold.until if state.hold else max(state.since + changes.hold_after, state.hold_from)
        if changes.scheduler == "" and state.nominations:
            yield next_renewal(state) or now
