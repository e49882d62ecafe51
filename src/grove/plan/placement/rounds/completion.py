"""Whether a released gang becomes whole, or is deleted whole and starts over.

The scheduler binds the pods of a gang one after another. If a pod of a higher priority takes a node in
between, the pods that are bound hold their nodes without effect. Such a gang has a few seconds, in which the
scheduler may find another node; the time in which pods that it has preempted are leaving does not count,
as far as their grace periods last.

Where a pod is nominated to a node with room, the scheduler is about to bind it, after its back-off. If it
does not, something else than room is missing, such as a volume or a host port. Then the gang has the longer
time, from the last pod on that was bound.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment
from grove.plan.placement.state import GangState, ObservedGang, Refused


def completed(gang: ObservedGang, now: float) -> GangState:
    """The next state of a gang whose pods the scheduler may bind. It fails if it cannot be completed: it
    never runs in part, unless it waits for nodes that an autoscaler adds."""
    state, assignment = gang.state, gang.state.decision
    assert isinstance(assignment, Assignment)
    if state.demand.was_scheduled or assignment.in_part:
        # Its minimum has run: the others hold no nodes without effect, and pods may be replaced on any host.
        if assignment.hosts:
            state = replace(state, decision=replace(assignment, hosts={}, preempting=False))
        return replace(state, stuck_since=0.0, refused=None) if state.stuck_since or state.refused else state
    assignment = _with_all_released(gang, assignment)
    state = replace(_timed(state, gang, now), decision=assignment)
    if _is_over(gang.stuck, _stuck_limit(state), now) or _is_over(gang.refused, _refused_limit(state), now):
        return replace(state, decision=replace(assignment, failed=True))
    return state


def _is_over(observed: bool, limit: float | None, now: float) -> bool:
    return observed and limit is not None and now >= limit


def _with_all_released(gang: ObservedGang, assignment: Assignment) -> Assignment:
    """The assignment with all pods released, once one for which others are preempted is bound: then the gang
    is incomplete already, and becomes whole sooner if none of its pods waits any longer."""
    return replace(assignment, preempting=False) if assignment.preempting and gang.bound else assignment


def completion_limit(state: GangState) -> float | None:
    """When a released gang fails if pods of it are still refused; None: none is, or it has failed."""
    limits = (_stuck_limit(state), _refused_limit(state))
    return min((limit for limit in limits if limit is not None), default=None)


def _refused_limit(state: GangState) -> float | None:
    refused, assignment = state.refused, state.decision
    if refused is None or not isinstance(assignment, Assignment) or assignment.failed:
        return None
    return refused.since + timing.INCOMPLETE_GANG_LIMIT


def _stuck_limit(state: GangState) -> float | None:
    assignment = state.decision
    if not isinstance(assignment, Assignment) or assignment.failed or not state.stuck_since:
        return None
    # Pods that may be bound to one node only do not find another one.
    soon = state.half_bound or assignment.hosts
    return state.stuck_since + (timing.HALF_BOUND_LIMIT if soon else timing.INCOMPLETE_GANG_LIMIT)


def _timed(state: GangState, gang: ObservedGang, now: float) -> GangState:
    """The state with the time since when the gang is stuck. It starts with the first bound pod, and then goes
    on until all are bound: one pod after another may be stuck."""
    half_bound = bool(gang.bound)
    since, refused = state.stuck_since, _refused(state, gang, now)
    if now < gang.victims_leave_until or not (gang.stuck or (since and half_bound)):
        since = 0.0
    elif not since or half_bound != state.half_bound:
        since = now
    if (since, half_bound, refused) == (state.stuck_since, state.half_bound, state.refused):
        return state
    return replace(state, stuck_since=since, half_bound=half_bound, refused=refused)


def _refused(state: GangState, gang: ObservedGang, now: float) -> Refused | None:
    """The pods that are refused. Their time starts again with each pod that is bound: the scheduler tries
    those of a large gang again one after another."""
    if not gang.refused or now < gang.victims_leave_until:
        return None
    if state.refused is not None and len(gang.bound) <= state.refused.bound:
        return state.refused
    return Refused(now, len(gang.bound))
