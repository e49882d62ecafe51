"""Computes the status updates of a replica's cliques, groups and gangs, and its contribution to the status of
the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.plan.desired.expand import Clique, Group, ReplicaLayout
from grove.plan.fabric.channels import channel_shortage
from grove.plan.gang.status import gang_status
from grove.plan.model import ReplicaSummary, StatusUpdate
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.snapshot import Snapshot
from grove.plan.status.clique_and_group import (
    CliqueHealth,
    ReplicaRestart,
    clique_status,
    group_status,
    has_been_scheduled,
)
from grove.plan.termination.policy import TerminationPlanner
from grove.plan.writes.builders import GroveObject, target

Views = Mapping[str, CliqueHealth]


def status_updates(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    views: Views,
    rollout: RolloutPlanner,
    termination: TerminationPlanner,
    message: Mapping[str, str],
    now: float,
) -> tuple[StatusUpdate, ...]:
    """Returns the status updates of a replica. `message` has the scheduler's message by gang that waits for
    nodes."""
    updates = _StatusUpdates(snapshot, layout, views, rollout, termination, now)
    of_gangs = [
        _status_update(
            found,
            found.status,
            gang_status(
                found,
                gang,
                views,
                termination.exhausted.get(gang.name, ""),
                message.get(gang.name, ""),
                now,
                channel_shortage(gang),
            ),
        )
        for gang in layout.gangs
        if (found := snapshot.gangs.get(gang.name))
    ]
    return (*updates.of_cliques(), *updates.of_groups(), *of_gangs)


class _StatusUpdates:
    """The status updates of cliques and groups."""

    def __init__(
        self,
        snapshot: Snapshot,
        layout: ReplicaLayout,
        views: Views,
        rollout: RolloutPlanner,
        termination: TerminationPlanner,
        now: float,
    ) -> None:
        self._snapshot, self._layout, self._views, self._now = snapshot, layout, views, now
        self._rollout, self._termination = rollout, termination
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
                    self._termination.restart_state(clique),
                    self._now,
                )
                yield _status_update(found, found.status, status, self._is_restart_pending(clique))

    def of_groups(self) -> Iterator[StatusUpdate]:
        for group in self._layout.groups:
            if (found := self._snapshot.groups.get(group.name)) is not None:
                step = self._rollout.group_steps[group.name]
                status = group_status(
                    found,
                    group,
                    _by_replica(self._views, group.name),
                    step.progress,
                    step.overdue,
                    self._set_name,
                    self._hash,
                    ReplicaRestart(
                        self._termination.restarted_at,
                        self._replicas_scheduled_since_restart(group) < group.min_available,
                    ),
                    self._now,
                )
                yield _status_update(
                    found, found.status, status, not self._replicas_scheduled_since_restart(group)
                )

    def _is_restart_pending(self, clique: Clique) -> bool:
        """Whether a clique was restarted and has not been scheduled since."""
        found, restart = self._snapshot.cliques.get(clique.name), self._termination.restart_state(clique)
        if found is None or not restart.restarted_at:
            return False
        return not has_been_scheduled(found.status, self._views[clique.name], restart)

    def _replicas_scheduled_since_restart(self, group: Group) -> int:
        """How many replicas of a group have been scheduled since their last restart."""
        replicas = _by_replica(self._views, group.name)
        return sum(not any(self._is_restart_pending(view.wanted) for view in views) for views in replicas)


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
    groups = [(group, _by_replica(views, group.name)) for group in layout.groups]
    available = all(view.available for view in standalone) and all(
        group.replicas == 0
        or sum(all(view.scheduled and view.available for view in views) for views in replicas)
        >= group.min_available
        for group, replicas in groups
    )
    all_updated = all(view.updated for view in views.values())
    return ReplicaSummary(
        available=available,
        updated=available and all(view.current for view in views.values()),
        cliques=len(standalone),
        updated_cliques=sum(view.current and view.available for view in standalone),
        groups=len(groups),
        updated_groups=sum(all(view.current for each in replicas for view in each) for _, replicas in groups),
        generation_hash=layout.generation_hash,
        update_complete=all_updated and (available or not was_scheduled) and not rollout.running,
        scheduled_pods=sum(view.count.scheduled for view in views.values()),
        breached=any(view.breached for view in standalone)
        or any(_is_below_min_available(group, replicas) for group, replicas in groups),
        outdated=any(view.count.updated < view.count.replicas for view in views.values()),
        updating=rollout.running,
        stalled=rollout.stalled,
        unconfigured_scheduler=unconfigured_scheduler,
    )


def _is_below_min_available(group: Group, replicas: list[list[CliqueHealth]]) -> bool:
    healthy = sum(not any(view.breached for view in views) for views in replicas)
    return group.replicas > 0 and healthy < group.min_available


def _by_replica(views: Views, group: str) -> list[list[CliqueHealth]]:
    replicas: dict[int, list[CliqueHealth]] = {}
    for view in views.values():
        if view.wanted.group is not None and view.wanted.group.name == group:
            replicas.setdefault(view.wanted.group_replica, []).append(view)
    return list(replicas.values())


def _status_update(
    found: GroveObject, current: object, desired: object, restart_pending: bool = False
) -> StatusUpdate:
    meta = found.metadata
    return StatusUpdate(
        target(found), current, desired, meta.generation, meta.resource_version, restart_pending
    )
