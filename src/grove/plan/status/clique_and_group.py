"""Computes the statuses of PodCliques and PodCliqueScalingGroups. Each number is counted from the pods of the
snapshot: nothing is inferred from what another object reported earlier.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import CliqueReason, ConditionType, GroupReason
from grove.api.meta import Condition
from grove.api.naming import labels
from grove.api.types.podclique import PodClique, PodCliqueStatus, PodCliqueUpdateProgress
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from grove.plan.cliques.health import CliqueHealth, GroupHealth
from grove.plan.conditions import (
    Conditions,
    find,
    is_true,
    merge_conditions,
    new_condition,
    update_in_progress,
    without,
)
from grove.plan.rollout.progress import is_in_progress
from grove.plan.termination.history import RestartState, has_been_scheduled
from grove.plan.timestamps import timestamp


class ReplicaRestart(Struct, frozen=True, gc=False):
    """The latest restart of a whole replica of the set, as seen by one of its groups."""

    at: float = 0.0
    """When it was restarted; 0 if never."""
    unrecovered: bool = False
    """Fewer than `minAvailable` replicas of the group have been scheduled since."""


def _conditions_since_restart(before: PodCliqueStatus, restart: RestartState) -> tuple[Condition, ...]:
    """The conditions without `WasScheduled` if that is from before the restart."""
    return tuple(
        condition
        for condition in before.conditions
        if condition.type != ConditionType.WAS_SCHEDULED
        or timestamp(condition.last_transition_time) >= restart.restarted_at
    )


def clique_status(
    clique: PodClique,
    view: CliqueHealth,
    progress: PodCliqueUpdateProgress | None,
    overdue: bool,
    set_name: str,
    generation_hash: str,
    restart: RestartState,
    now: float,
) -> PodCliqueStatus:
    """Returns the status of a PodClique."""
    updating = is_in_progress(progress)
    was_updated = view.updated and not updating
    conditions = (
        *_clique_conditions(view, updating),
        *_was_scheduled_condition(has_been_scheduled(clique.status, view, restart)),
    )
    count, before, hash_ = view.count, clique.status, view.wanted.template_hash
    known = merge_conditions(_conditions_since_restart(before, restart), conditions, now)
    selector = "" if view.wanted.group else labels.selector(labels.pods_of_clique(set_name, view.wanted.name))
    return replace(
        before,
        replicas=count.replicas,
        ready_replicas=count.ready,
        scheduled_replicas=count.scheduled,
        schedule_gated_replicas=count.gated,
        updated_replicas=count.updated,
        hpa_pod_selector=selector,
        conditions=known if view.wanted.group else _with_update(known, updating, overdue, now),
        current_pod_template_hash=hash_ if was_updated else before.current_pod_template_hash,
        current_pod_clique_set_generation_hash=(
            generation_hash if was_updated else before.current_pod_clique_set_generation_hash
        ),
        update_progress=progress,
    )


def _was_scheduled_condition(was_scheduled: bool) -> tuple[Condition, ...]:
    """Added once it is true: a clique that was never scheduled does not have the condition."""
    if not was_scheduled:
        return ()
    return (
        new_condition(
            ConditionType.WAS_SCHEDULED, True, CliqueReason.HAD_NODES, "Enough pods have had a node"
        ),
    )


def _clique_conditions(view: CliqueHealth, updating: bool) -> tuple[Condition, Condition]:
    need, count = view.needed, view.count
    scheduled_message = f"{count.scheduled} of {view.wanted.replicas} pods are scheduled, {need} are needed"
    ready_message = f"{count.ready} of {view.wanted.replicas} pods are ready, {need} are needed"
    scheduled = new_condition(
        ConditionType.CLIQUE_SCHEDULED,
        view.scheduled,
        CliqueReason.SUFFICIENT_SCHEDULED_PODS
        if view.scheduled
        else CliqueReason.INSUFFICIENT_SCHEDULED_PODS,
        scheduled_message,
    )
    if updating:
        return scheduled, new_condition(
            ConditionType.MIN_AVAILABLE_BREACHED, None, CliqueReason.UPDATE_IN_PROGRESS, ready_message
        )
    reason = CliqueReason.SUFFICIENT_READY_PODS
    if view.breached:
        short_of_nodes = count.scheduled < need
        reason = (
            CliqueReason.SCHEDULED_REPLICAS_BELOW_MIN_AVAILABLE
            if short_of_nodes
            else CliqueReason.INSUFFICIENT_READY_PODS
        )
    breached = new_condition(
        ConditionType.MIN_AVAILABLE_BREACHED,
        view.breached,
        reason,
        scheduled_message if reason is CliqueReason.SCHEDULED_REPLICAS_BELOW_MIN_AVAILABLE else ready_message,
    )
    return scheduled, breached


def group_status(
    group: PodCliqueScalingGroup,
    health: GroupHealth,
    progress: PodCliqueScalingGroupUpdateProgress | None,
    overdue: bool,
    set_name: str,
    generation_hash: str,
    restart: ReplicaRestart,
    now: float,
) -> PodCliqueScalingGroupStatus:
    """Returns the status of a PodCliqueScalingGroup."""
    updating = is_in_progress(progress)
    before, wanted = group.status, health.wanted
    conditions = _group_conditions(before.conditions, _group_breach(health, updating), restart, now)
    return replace(
        before,
        replicas=wanted.replicas,
        scheduled_replicas=health.scheduled_replicas,
        available_replicas=health.available_replicas,
        updated_replicas=health.updated_replicas,
        selector=labels.selector(labels.pods_of_group(set_name, wanted.name)),
        conditions=_with_update(conditions, updating, overdue, now),
        current_pod_clique_set_generation_hash=(
            generation_hash
            if health.updated and not updating
            else before.current_pod_clique_set_generation_hash
        ),
        update_progress=progress,
    )


_DEADLINE_EXCEEDED = "No new pod was created or became ready within progressDeadline"


def _with_update(known: Conditions, updating: bool, overdue: bool, now: float) -> Conditions:
    """Adds the condition whether an update is in progress and within its deadline."""
    return merge_conditions(
        known, (update_in_progress(updating, _DEADLINE_EXCEEDED if overdue else ""),), now
    )


def _group_conditions(
    known: Conditions, breach: Condition, restart: ReplicaRestart, now: float
) -> Conditions:
    """Sets `GangTerminationInProgress` with a breach that led to the restart of the replica, or that follows
    from it, until the breach ends."""
    conditions = merge_conditions(known, (breach,), now)
    since = find(conditions, ConditionType.MIN_AVAILABLE_BREACHED)
    assert since is not None
    noted = is_true(known, ConditionType.GANG_TERMINATION_IN_PROGRESS)
    from_restart = noted or restart.unrecovered or timestamp(since.last_transition_time) <= restart.at
    if breach.status == "True" and restart.at and from_restart:
        message = "The replica was restarted and is not available yet"
        active = new_condition(
            ConditionType.GANG_TERMINATION_IN_PROGRESS, True, GroupReason.GANG_TERMINATION_ACTIVE, message
        )
        return merge_conditions(conditions, (active,), now)
    return without(conditions, ConditionType.GANG_TERMINATION_IN_PROGRESS)


def _group_breach(health: GroupHealth, updating: bool) -> Condition:
    message = f"{health.healthy} of {health.wanted.replicas} replicas are healthy, {health.needed} are needed"
    if updating:
        return new_condition(
            ConditionType.MIN_AVAILABLE_BREACHED, None, GroupReason.UPDATE_IN_PROGRESS, message
        )
    return new_condition(
        ConditionType.MIN_AVAILABLE_BREACHED,
        health.breached,
        GroupReason.INSUFFICIENT_AVAILABLE_REPLICAS
        if health.breached
        else GroupReason.SUFFICIENT_AVAILABLE_REPLICAS,
        message,
    )
