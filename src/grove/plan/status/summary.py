"""Computes the status updates of a replica's cliques, groups and gangs, and its contribution to the status of
the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from grove.api.meta import Condition
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podgang import PodGang
from grove.plan.cliques.health import CliqueHealth, GroupHealth, group_health
from grove.plan.desired.expand import Clique, Gang, ReplicaLayout
from grove.plan.fabric.channels import channel_shortage
from grove.plan.fabric.replica_domains import domain_problem
from grove.plan.gang.enforcement import lost_enforcement, with_enforcement
from grove.plan.gang.placement_status import PlacementStatus
from grove.plan.gang.status import gang_status, missing_labels
from grove.plan.model import ReplicaSummary, StatusUpdate
from grove.plan.placement.assignment import released_in_part
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.snapshot import Snapshot
from grove.plan.status.clique_and_group import ReplicaRestart, clique_status, group_status
from grove.plan.status.lost_scheduling import lost_scheduling_events
from grove.plan.status.waiting import ReplicaReasons, waiting_events, with_reason
from grove.plan.termination.history import TerminationHistory, has_been_scheduled
from grove.plan.writes.builders import status_update
from grove.reasons.model import WaitReason

Views = Mapping[str, CliqueHealth]
S = TypeVar("S", PodCliqueStatus, PodCliqueScalingGroupStatus)


def status_updates(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    views: Views,
    rollout: RolloutPlanner,
    history: TerminationHistory,
    exhausted: Mapping[str, str],
    message: Mapping[str, str],
    placed: Mapping[str, Condition | None],
    enforced: Mapping[str, Condition],
    reasons: ReplicaReasons,
    now: float,
) -> tuple[StatusUpdate, ...]:
    """Returns the status updates of a replica. `exhausted` says by gang why it is not restarted any more;
    `message` has the scheduler's message by gang that waits for nodes; `placed` are the gangs that the
    operator places, with the condition that says what is not held for them; `enforced` says by gang with
    constraints whether they are enforced; `reasons` say why pods wait."""
    placements = PlacementStatus(snapshot, placed, now)
    updates = _StatusUpdates(snapshot, layout, views, rollout, history, reasons, now)
    in_part = released_in_part(snapshot.placements)

    def of_gang(gang: Gang, found: PodGang) -> StatusUpdate:
        status = gang_status(
            found,
            gang,
            views,
            exhausted.get(gang.name, ""),
            message.get(gang.name, ""),
            now,
            channel_shortage(gang),
            gang.name in in_part,
            missing_labels(found, snapshot.unused_labels),
            domain_problem(gang, now),
        )
        condition, reason = enforced.get(gang.name), reasons.of_gangs.get(gang.name)
        conditions = with_reason(with_enforcement(status, condition, now), reason, now)
        status = replace(status, conditions=conditions)
        events = (*lost_enforcement(found, condition), *waiting_events(found, reason))
        return status_update(found, placements.added(found, status), found.metadata.generation, events)

    of_gangs = (of_gang(gang, found) for gang in layout.gangs if (found := snapshot.gangs.get(gang.name)))
    return (*updates.of_cliques(), *updates.of_groups(), *of_gangs)


class _StatusUpdates:
    """The status updates of cliques and groups."""

    def __init__(
        self,
        snapshot: Snapshot,
        layout: ReplicaLayout,
        views: Views,
        rollout: RolloutPlanner,
        history: TerminationHistory,
        reasons: ReplicaReasons,
        now: float,
    ) -> None:
        self._reasons = reasons
        self._snapshot, self._layout, self._views, self._now = snapshot, layout, views, now
        self._rollout, self._history = rollout, history
        self._set_name, self._hash = snapshot.workload.metadata.name, layout.generation_hash

    def of_cliques(self) -> Iterator[StatusUpdate]:
        for clique in self._layout.cliques:
            if (found := self._snapshot.cliques.get(clique.name)) is not None:
                step = self._rollout.clique_steps.get(clique.name)
                status = clique_status(
                    found,
                    self._views[clique.name],
                    step.progress if step else found.status.update_progress,
                    step is not None and step.overdue,
                    self._set_name,
                    self._hash,
                    self._history.restart_state(clique),
                    self._now,
                )
                status = self._with_reason(status, self._reasons.of_cliques.get(clique.name))
                step_of_group = self._rollout.group_steps.get(clique.group.name) if clique.group else None
                events = lost_scheduling_events(
                    found,
                    status,
                    self._is_restart_pending(clique),
                    step_of_group.progress if step_of_group else None,
                )
                updating = any(each is not None and each.running for each in (step, step_of_group))
                yield status_update(found, status, found.metadata.generation, events, updating=updating)

    def of_groups(self) -> Iterator[StatusUpdate]:
        for group in self._layout.groups:
            if (found := self._snapshot.groups.get(group.name)) is not None:
                step = self._rollout.group_steps[group.name]
                health = group_health(group, self._views.values())
                scheduled = self._replicas_scheduled_since_restart(health)
                status = group_status(
                    found,
                    health,
                    step.progress,
                    step.overdue,
                    self._set_name,
                    self._hash,
                    ReplicaRestart(self._history.restarted_at, scheduled < group.min_available),
                    self._now,
                )
                status = self._with_reason(status, self._reasons.of_groups.get(group.name))
                events = lost_scheduling_events(found, status, not scheduled)
                yield status_update(found, status, found.metadata.generation, events, updating=step.running)

    def _with_reason(self, status: S, reason: WaitReason | None) -> S:
        return replace(status, conditions=with_reason(status.conditions, reason, self._now, brief=True))

    def _is_restart_pending(self, clique: Clique) -> bool:
        """Whether a clique was restarted and has not been scheduled since."""
        found, restart = self._snapshot.cliques.get(clique.name), self._history.restart_state(clique)
        if found is None or not restart.restarted_at:
            return False
        return not has_been_scheduled(found.status, self._views[clique.name], restart)

    def _replicas_scheduled_since_restart(self, group: GroupHealth) -> int:
        """How many replicas of a group have been scheduled since their last restart."""
        return sum(
            not any(self._is_restart_pending(view.wanted) for view in views) for views in group.replicas
        )


def replica_summary(
    layout: ReplicaLayout,
    views: Views,
    rollout: RolloutPlanner,
    was_scheduled: bool,
    unconfigured_scheduler: str = "",
) -> ReplicaSummary:
    """Returns what the replica contributes to the status of its set. A replica that waits for its first nodes
    has nothing to lose, and no update waits for it. `unconfigured_scheduler` is its scheduler if the
    configuration no longer lists it."""
    standalone = [view for view in views.values() if view.wanted.group is None]
    groups = [group_health(group, views.values()) for group in layout.groups]
    available = all(view.available for view in standalone) and all(group.available for group in groups)
    all_updated = all(view.updated for view in views.values())
    return ReplicaSummary(
        available=available,
        ready=all(view.ready for view in views.values()),
        updated=available and all(view.current for view in views.values()),
        cliques=len(standalone),
        updated_cliques=sum(view.current and view.available for view in standalone),
        groups=len(groups),
        updated_groups=sum(group.current for group in groups),
        generation_hash=layout.generation_hash,
        update_complete=all_updated and (available or not was_scheduled) and not rollout.running,
        scheduled_pods=sum(view.count.scheduled for view in views.values()),
        breached=any(view.breached for view in standalone) or any(group.breached for group in groups),
        outdated=any(view.count.updated < view.count.replicas for view in views.values()),
        updating=rollout.running,
        stalled=rollout.stalled,
        unconfigured_scheduler=unconfigured_scheduler,
    )
