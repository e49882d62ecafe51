"""Rolling update of one replica: which pods are replaced next, and how far cliques and groups have come.

Decisions are written down before they are acted on: that a unit is taken down stands in the status of its
clique or group, with the version that was read, before its gang forgets it and its pods are deleted. Whoever
plans again after a crash finds it there and goes on. What is replaced because it is not ready is confirmed
to be so first: an old view of pods must not take down a clique that has come up since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from msgspec import Struct
from msgspec.structs import replace

from grove.api.cliques import PodClique, PodsSelectedToUpdate
from grove.api.groups import PodCliqueScalingGroup, ReplicasSelectedToUpdate
from grove.api.parts import RollingUpdate
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.candidates import outdated, pods_as_units, replica_as_unit
from grove.plan.enrolment import Enrolled
from grove.plan.expand import Group
from grove.plan.leaving import lingers_until, surplus_pods, surplus_replicas
from grove.plan.moments import moment, rfc3339, seconds
from grove.plan.progress import (
    CliqueProgress,
    GroupProgress,
    P,
    Target,
    resumed,
    selection,
    settled,
    taken_down,
)
from grove.plan.turns import Turn
from grove.plan.units import Name, Verdict, judge


class Step(Struct, Generic[P], frozen=True):
    """What the update does about one clique or group, and how its progress then reads."""

    progress: P | None = None
    decided: P | None = None
    """The same with the units that are now to be taken down: written down before they are, told after."""
    outgoing: tuple[Pod, ...] = ()
    """Pods to replace."""
    unready: tuple[Pod, ...] = ()
    """Those whose not being ready is the reason."""
    overdue: bool = False
    """It has come no further for longer than it may."""
    wake_at: float | None = None

    @property
    def going(self) -> frozenset[str]:
        return frozenset(pod.metadata.name for pod in self.outgoing)

    @property
    def running(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is None


def roll_clique(target: Target, found: PodClique, clique: Enrolled) -> Step[CliqueProgress]:
    """The next step for a clique that stands alone."""
    known, wanted = found.status.update_progress, clique.wanted
    opened = CliqueProgress(
        update_started_at=rfc3339(target.now),
        pod_clique_set_generation_hash=target.generation_hash,
        pod_template_hash=wanted.template_hash,
    )
    same = known is not None and (
        known.pod_clique_set_generation_hash == target.generation_hash
        and known.pod_template_hash == wanted.template_hash
    )
    progress = resumed(target, known, opened, same)
    if progress is None or (target.turn is Turn.NONE and progress.update_ended_at is not None):
        return Step(progress)
    selected = progress.ready_pods_selected_to_update
    taken = taken_down(selected)
    units = pods_as_units(clique, taken, selected.current if selected else "", target.now)
    pace = wanted.template.rolling_update
    verdict = judge(units, wanted.min_available, _budget(pace) - surplus_pods(clique, target.now))
    progress = settled(progress, target, verdict)
    step = _step(progress, verdict, [clique], pace, target)
    if not verdict.chosen:
        return step
    chosen = PodsSelectedToUpdate(*selection(taken, verdict.chosen))
    return replace(step, decided=replace(progress, ready_pods_selected_to_update=chosen))


def roll_group(
    target: Target,
    found: PodCliqueScalingGroup,
    group: Group,
    replicas: Mapping[int, Sequence[Enrolled]],
    pods: Sequence[Pod] = (),
) -> Step[GroupProgress]:
    """The next step for a scaling group, of which each replica is replaced as a whole. `pods` are all that
    there are, of replicas that it has no more, too."""
    known = found.status.update_progress
    opened = GroupProgress(
        update_started_at=rfc3339(target.now), pod_clique_set_generation_hash=target.generation_hash
    )
    same = known is not None and known.pod_clique_set_generation_hash == target.generation_hash
    progress = resumed(target, known, opened, same)
    if progress is None:
        return Step(progress)
    views = [clique.view for cliques in replicas.values() for clique in cliques]
    # Counts are what is seen, also when all is over: who sees late may have been the last to count.
    progress = replace(
        progress,
        updated_pod_cliques_count=sum(view.current and view.available for view in views),
        total_pod_cliques_count=len(views),
    )
    if target.turn is Turn.NONE and progress.update_ended_at is not None:
        return Step(progress)
    selected = progress.ready_replica_indices_selected_to_update
    taken = taken_down(selected)
    units = [replica_as_unit(index, cliques, taken, target.now) for index, cliques in replicas.items()]
    if selected is not None:
        units.sort(key=lambda unit: unit.name != selected.current)
    surplus = surplus_replicas(group, pods, target.now)
    verdict = judge(units, group.min_available, _budget(group.template.rolling_update) - len(surplus))
    progress = settled(progress, target, verdict)
    everybody = [clique for cliques in replicas.values() for clique in cliques]
    step = _step(progress, verdict, everybody, group.template.rolling_update, target, surplus.values())
    if not verdict.chosen:
        return step
    chosen = ReplicasSelectedToUpdate(*selection(taken, verdict.chosen))
    return replace(step, decided=replace(progress, ready_replica_indices_selected_to_update=chosen))


def _budget(pace: RollingUpdate | None) -> int:
    """How many units may be down at once."""
    return 1 if pace is None or pace.max_unavailable is None else max(1, pace.max_unavailable)


def _step(
    progress: P,
    verdict: Verdict[Name],
    cliques: Sequence[Enrolled],
    pace: RollingUpdate | None,
    target: Target,
    others: Iterable[float] = (),
) -> Step[P]:
    moments = [lingers_until(pod, target.now) for clique in cliques for pod in clique.pods]
    moments += others
    overdue = False
    if progress.update_ended_at is None and pace is not None and pace.progress_deadline is not None:
        deadline = _latest_progress(progress, cliques) + seconds(pace.progress_deadline)
        overdue = target.now >= deadline
        moments.append(0.0 if overdue else deadline)
    if target.turn is not Turn.ROLLING:
        return Step(progress)
    going = (*verdict.unready, *verdict.chosen)
    return Step(
        progress,
        progress,
        outgoing=tuple(pod for unit in going for pod in unit.pods),
        unready=tuple(pod for unit in verdict.unready for pod in unit.pods if not state.ready(pod)),
        overdue=overdue,
        wake_at=min((when for when in moments if when), default=None),
    )


def _latest_progress(progress: CliqueProgress | GroupProgress, cliques: Sequence[Enrolled]) -> float:
    """When a new pod was last made or became ready; that is written on the pods themselves."""
    latest = moment(progress.update_started_at)
    for clique in cliques:
        for pod in clique.pods:
            if not outdated(clique, pod):
                latest = max(latest, moment(pod.metadata.creation_timestamp), state.ready_since(pod))
    return latest
