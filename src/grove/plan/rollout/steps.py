"""Decides which pods of a clique or group a rollout replaces next, and computes its progress.

Decisions are recorded before they are acted on: the units to replace are written to the status of their
clique or group, with the resourceVersion that was read, before the gang drops them and their pods are
deleted. After a crash the next plan reads them there and continues. Pods that are replaced because they are
not ready are confirmed first: a stale cache must not cause the replacement of a clique that has become ready
since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Generic

from msgspec import Struct
from msgspec.structs import replace

from grove.api.types.common import RollingUpdate
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique, PodsSelectedToUpdate
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup, ReplicasSelectedToUpdate
from grove.plan.cliques.state import CliqueState
from grove.plan.desired.expand import Group
from grove.plan.members import pod_state
from grove.plan.rollout.budget import max_unavailable, surplus_pods, surplus_replicas, terminating_until
from grove.plan.rollout.progress import (
    CliqueProgress,
    GroupProgress,
    P,
    UpdateTarget,
    close_or_reopen,
    is_in_progress,
    record_selection,
    replaced_units,
    resume_progress,
)
from grove.plan.rollout.replica_order import UpdateMode
from grove.plan.rollout.unit_state import outdated, pods_as_units, replicas_as_units
from grove.plan.rollout.units import Name, UpdateDecision, select_units
from grove.plan.timestamps import rfc3339, seconds, timestamp


class RolloutStep(Struct, Generic[P], frozen=True):
    """The step of a rollout for one clique or group, and the progress that follows."""

    progress: P | None = None
    planned_progress: P | None = None
    """The same with the units that are replaced now: written before their pods are deleted, published
    after."""
    replaced_pods: tuple[Pod, ...] = ()
    """Pods to replace."""
    unready: tuple[Pod, ...] = ()
    """Those that are replaced because they are not ready."""
    overdue: bool = False
    """No progress within `progressDeadline`."""
    requeue_at: float | None = None

    @property
    def replaced_names(self) -> frozenset[str]:
        return frozenset(pod.metadata.name for pod in self.replaced_pods)

    @property
    def running(self) -> bool:
        return is_in_progress(self.progress)


def plan_clique_step(
    target: UpdateTarget, found: PodClique, clique: CliqueState
) -> RolloutStep[CliqueProgress]:
    """Returns the next step for a clique that is not in a group."""
    progress = _clique_progress(target, found.status.update_progress, clique.wanted.template_hash)
    if progress is None or _is_idle(target, progress):
        return RolloutStep(progress)
    selected = progress.ready_pods_selected_to_update
    replaced_earlier = replaced_units(selected)
    units = pods_as_units(clique, replaced_earlier, selected.current if selected else "", target.now)
    rolling_update = clique.wanted.template.rolling_update
    budget = max_unavailable(rolling_update) - surplus_pods(clique, target.now)
    decision = select_units(units, clique.wanted.min_available, budget)
    progress = close_or_reopen(progress, target, decision)
    step = _step(progress, decision, [clique], rolling_update, target)
    if not decision.chosen:
        return step
    chosen = PodsSelectedToUpdate(*record_selection(replaced_earlier, decision.chosen))
    return replace(step, planned_progress=replace(progress, ready_pods_selected_to_update=chosen))


def plan_group_step(
    target: UpdateTarget,
    found: PodCliqueScalingGroup,
    group: Group,
    replicas: Mapping[int, Sequence[CliqueState]],
    pods: Sequence[Pod] = (),
) -> RolloutStep[GroupProgress]:
    """Returns the next step for a scaling group, whose replicas are each replaced as a whole. `pods` are all
    existing ones, including those of surplus replicas."""
    cliques = list(chain.from_iterable(replicas.values()))
    progress = _group_progress(target, found.status.update_progress, cliques)
    if progress is None or _is_idle(target, progress):
        return RolloutStep(progress)
    selected = progress.ready_replica_indices_selected_to_update
    replaced_earlier = replaced_units(selected)
    units = replicas_as_units(replicas, replaced_earlier, selected.current if selected else None, target.now)
    surplus = surplus_replicas(group, pods, target.now)
    budget = max_unavailable(group.template.rolling_update) - len(surplus)
    decision = select_units(units, group.min_available, budget)
    progress = close_or_reopen(progress, target, decision)
    step = _step(progress, decision, cliques, group.template.rolling_update, target, surplus.values())
    if not decision.chosen:
        return step
    chosen = ReplicasSelectedToUpdate(*record_selection(replaced_earlier, decision.chosen))
    return replace(step, planned_progress=replace(progress, ready_replica_indices_selected_to_update=chosen))


def _clique_progress(
    target: UpdateTarget, known: CliqueProgress | None, template_hash: str
) -> CliqueProgress | None:
    """The progress of a clique before this step."""
    new_progress = CliqueProgress(
        update_started_at=rfc3339(target.now),
        pod_clique_set_generation_hash=target.generation_hash,
        pod_template_hash=template_hash,
    )
    same = known is not None and (
        known.pod_clique_set_generation_hash == target.generation_hash
        and known.pod_template_hash == template_hash
    )
    return resume_progress(target, known, new_progress, same)


def _group_progress(
    target: UpdateTarget, known: GroupProgress | None, cliques: Sequence[CliqueState]
) -> GroupProgress | None:
    """The progress of a group before this step. Cliques are counted also after its end: the last count may
    have been written from a stale cache."""
    new_progress = GroupProgress(
        update_started_at=rfc3339(target.now), pod_clique_set_generation_hash=target.generation_hash
    )
    same = known is not None and known.pod_clique_set_generation_hash == target.generation_hash
    progress = resume_progress(target, known, new_progress, same)
    return progress and replace(
        progress,
        updated_pod_cliques_count=sum(clique.view.current and clique.view.available for clique in cliques),
        total_pod_cliques_count=len(cliques),
    )


def _is_idle(target: UpdateTarget, progress: CliqueProgress | GroupProgress) -> bool:
    """Whether the update has ended, and no other one concerns the replica."""
    return target.mode is UpdateMode.NONE and progress.update_ended_at is not None


def _step(
    progress: P,
    decision: UpdateDecision[Name],
    cliques: Sequence[CliqueState],
    rolling_update: RollingUpdate | None,
    target: UpdateTarget,
    surplus_until: Iterable[float] = (),
) -> RolloutStep[P]:
    if target.mode is not UpdateMode.ROLLING:
        return RolloutStep(progress)
    deadline = _progress_deadline(progress, cliques, rolling_update)
    overdue = deadline is not None and target.now >= deadline
    times = [terminating_until(pod, target.now) for clique in cliques for pod in clique.pods]
    times += surplus_until
    if deadline is not None and not overdue:
        times.append(deadline)
    replaced = (*decision.unready, *decision.chosen)
    return RolloutStep(
        progress,
        progress,
        replaced_pods=tuple(pod for unit in replaced for pod in unit.pods),
        unready=tuple(pod for unit in decision.unready for pod in unit.pods if not pod_state.ready(pod)),
        overdue=overdue,
        requeue_at=min((when for when in times if when), default=None),
    )


def _progress_deadline(
    progress: CliqueProgress | GroupProgress,
    cliques: Sequence[CliqueState],
    rolling_update: RollingUpdate | None,
) -> float | None:
    """`progressDeadline` after the latest progress of an update; None if it has ended or has no deadline."""
    deadline = rolling_update.progress_deadline if rolling_update is not None else None
    if deadline is None or progress.update_ended_at is not None:
        return None
    return _latest_progress(progress, cliques) + seconds(deadline)


def _latest_progress(progress: CliqueProgress | GroupProgress, cliques: Sequence[CliqueState]) -> float:
    """When a pod of the new template was last created or became ready, by the timestamps of the pods."""
    latest = timestamp(progress.update_started_at)
    for clique in cliques:
        for pod in clique.pods:
            if not outdated(clique, pod):
                latest = max(latest, timestamp(pod.metadata.creation_timestamp), pod_state.ready_since(pod))
    return latest
