"""Plans the rollout of one replica: records the decision, then replaces members.

the set confirmed -> status of clique or group written, pods that are not ready confirmed
  -> gang names the successors -> pods deleted -> their successors created
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from grove.api.event_reasons import EventReporter
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.plan.cliques.health import by_replica
from grove.plan.cliques.state import CliqueState, DecideMembers
from grove.plan.desired.expand import ReplicaLayout
from grove.plan.desired.template_hash import is_own_hash
from grove.plan.rollout.progress import CliqueProgress, GroupProgress, UpdatesInProgress, UpdateTarget
from grove.plan.rollout.replica_order import UpdateMode, is_update_complete, update_mode
from grove.plan.rollout.steps import RolloutStep, plan_clique_step, plan_group_step
from grove.plan.snapshot import Snapshot
from grove.plan.timestamps import earliest
from grove.plan.writes.builders import confirm_pod, reference, write_status
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.events import UpdatedUnit

AnyRolloutStep = RolloutStep[CliqueProgress] | RolloutStep[GroupProgress]


class RolloutPlanner:
    """The rollout of one replica: its steps, and the cliques with the members that the steps leave. Other
    writes of a clique take precedence, because a plan writes each object at most once."""

    def __init__(self, snapshot: Snapshot, writes: WriteCollector, decide_members: DecideMembers) -> None:
        self._snapshot, self._writes, self._decide_members = snapshot, writes, decide_members
        self.clique_steps: dict[str, RolloutStep[CliqueProgress]] = {}
        self.group_steps: dict[str, RolloutStep[GroupProgress]] = {}

    def plan(
        self, layout: ReplicaLayout, cliques: dict[str, CliqueState], now: float
    ) -> dict[str, CliqueState]:
        """Plans the next steps if this replica is the one being updated; returns the cliques with their new
        members."""
        mode = update_mode(self._snapshot.workload, self._snapshot.index, layout.generation_hash)
        over = is_update_complete(self._snapshot.workload, layout.generation_hash)
        target = UpdateTarget(mode, layout.generation_hash, now, over)
        updated = dict(cliques)
        for name, clique in cliques.items():
            standalone = clique.wanted.group is None or mode is UpdateMode.ON_DELETE
            if standalone and clique.found is not None:
                self.clique_steps[name] = step = plan_clique_step(target, clique.found, clique)
                updated |= self._with_replacements(clique.found, step, [clique])
        for group in layout.groups:
            if (known := self._snapshot.groups.get(group.name)) is not None:
                replicas = by_replica(cliques.values(), group.name)
                step_of_group = plan_group_step(target, known, group, replicas, self._snapshot.pods)
                self.group_steps[group.name] = step_of_group
                group_cliques = [clique for members in replicas.values() for clique in members]
                updated |= self._with_replacements(known, step_of_group, group_cliques)
        return updated

    @property
    def in_progress(self) -> UpdatesInProgress:
        """The cliques and groups whose updates have not ended."""
        return UpdatesInProgress(
            frozenset(name for name, step in self.clique_steps.items() if step.running),
            frozenset(name for name, step in self.group_steps.items() if step.running),
        )

    @property
    def running(self) -> int:
        """How many updates of cliques and groups are under way."""
        return sum(step.running for step in self._steps)

    @property
    def stalled(self) -> int:
        """How many of them made no progress within `progressDeadline`."""
        return sum(step.overdue for step in self._steps)

    @property
    def requeue_at(self) -> float | None:
        return earliest(*(step.requeue_at for step in self._steps))

    @property
    def _steps(self) -> list[AnyRolloutStep]:
        return [*self.clique_steps.values(), *self.group_steps.values()]

    def _with_replacements(
        self,
        found: PodClique | PodCliqueScalingGroup,
        step: AnyRolloutStep,
        cliques: Iterable[CliqueState],
    ) -> dict[str, CliqueState]:
        """The cliques of which members are replaced, after the writes that record it."""
        affected = [clique for clique in cliques if step.replaced_names & {*clique.membership.references}]
        if not affected or self._writes.writes_for(found) or any(map(self._is_changing, affected)):
            return {}
        fences = (
            self._writes.confirm(self._snapshot.workload),
            *(self._writes.add(confirm_pod(pod)) for pod in _pods_to_confirm(step)),
            self._record(found, step),
        )
        replanned = [
            self._decide_members(clique.wanted, step.replaced_names & {*clique.membership.references})
            for clique in affected
        ]
        return {
            clique.wanted.name: replace(clique, fences=fences, unit=_unit(found, clique))
            for clique in replanned
        }

    def _record(self, found: PodClique | PodCliqueScalingGroup, step: AnyRolloutStep) -> str:
        """Records which members are replaced, or confirms the existing record."""
        if step.planned_progress == found.status.update_progress:
            return self._writes.confirm(found)
        return self._writes.add(
            write_status(found, replace(found.status, update_progress=step.planned_progress))
        )

    def _is_changing(self, clique: CliqueState) -> bool:
        """Whether members are already being added or deleted, or the clique itself is being repaired."""
        membership = clique.membership
        if membership.scales_in or membership.to_delete or clique.found is None:
            return True
        return bool(self._writes.writes_for(clique.found))


def _unit(found: PodClique | PodCliqueScalingGroup, clique: CliqueState) -> UpdatedUnit:
    """What is replaced together with pods of a clique, because `found` is updated."""
    if isinstance(found, PodClique):
        return UpdatedUnit(reference(found), EventReporter.CLIQUE)
    return UpdatedUnit(reference(found), EventReporter.GROUP, f" of replica {clique.wanted.group_replica}")


def _pods_to_confirm(step: AnyRolloutStep) -> list[Pod]:
    """The pods whose reason to be replaced may no longer hold: a pod that was not ready may be ready by now,
    and one with upstream's hash may have ours."""
    unready = {pod.metadata.name for pod in step.unready}
    return [
        pod for pod in step.replaced_pods if pod.metadata.name in unready or not is_own_hash(_hash_of(pod))
    ]


def _hash_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(labels.TEMPLATE_HASH)
