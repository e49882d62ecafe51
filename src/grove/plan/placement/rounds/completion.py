"""Whether a released gang becomes whole, or is deleted whole and starts over.

The scheduler binds the pods of a gang one after another. If a pod of a higher priority takes a node in
between, the pods that are bound hold their nodes without effect. Such a gang has a few seconds, in which the
scheduler may find another node; the time in which pods that it has preempted are leaving does not count,
as far as their grace periods last.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment
from grove.plan.placement.state import GangState, ObservedGang


def completed(gang: ObservedGang, now: float) -> GangState:
    """The next state of a gang whose pods the scheduler may bind. It fails if it cannot be completed: it
    never runs in part, unless it waits for nodes that an autoscaler adds."""
    state, assignment = gang.state, gang.state.decision
    assert isinstance(assignment, Assignment)
    if state.demand.was_scheduled or assignment.in_part:
        # Its minimum has run: the others hold no nodes without effect, and pods may be replaced on any host.
        if assignment.hosts:
            state = replace(state, decision=replace(assignment, hosts={}, preempting=False))
        return replace(state, stuck_since=0.0) if state.stuck_since else state
    assignment = _with_all_released(gang, assignment)
    state = replace(_timed(state, gang, now), decision=assignment)
    limit = completion_limit(state)
    if not gang.stuck or limit is None or now < limit:
        return state
    return replace(state, decision=replace(assignment, failed=True))


def _with_all_released(gang: ObservedGang, assignment: Assignment) -> Assignment:
    """The assignment with all pods released, if those for which others are preempted are bound."""
    unbound = {pod.slot for pod in gang.state.demand.unbound if pod.name not in gang.bound}
    if not assignment.preempting or not unbound.isdisjoint(assignment.hosts):
        return assignment
    return replace(assignment, preempting=False)


def completion_limit(state: GangState) -> float | None:
    """When a released gang fails if it is still stuck; None: it is not, or has failed."""
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
    since = state.stuck_since
    if now < gang.victims_leave_until or not (gang.stuck or (since and half_bound)):
        since = 0.0
    elif not since or half_bound != state.half_bound:
        since = now
    if (since, half_bound) == (state.stuck_since, state.half_bound):
        return state
    return replace(state, stuck_since=since, half_bound=half_bound)
