"""Rolling update of one replica: which pods are replaced next, and how far cliques and groups have come.

Decisions are written down before they are acted on: that a unit is taken down stands in the status of its
clique or group, with the version that was read, before its gang forgets it and its pods are deleted. Whoever
plans again after a crash finds it there and goes on. What is replaced because it is not ready is confirmed
to be so first: an old view of pods must not take down a clique that has come up since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels
from grove.api.cliques import PodClique, PodCliqueUpdateProgress, PodsSelectedToUpdate
from grove.api.groups import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupUpdateProgress,
    ReplicasSelectedToUpdate,
)
from grove.api.parts import RollingUpdate
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.enrolment import Enrolled
from grove.plan.expand import Group
from grove.plan.ledger import Member, age, succeeds
from grove.plan.moments import moment, rfc3339, seconds
from grove.plan.turns import Turn
from grove.plan.units import Name, Unit, Verdict, judge

_PATIENCE = 30.0  # a pod that is still there so long after it should have ended is not waited for

CliqueProgress = PodCliqueUpdateProgress
GroupProgress = PodCliqueScalingGroupUpdateProgress
P = TypeVar("P", CliqueProgress, GroupProgress)


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


class Target(Struct, frozen=True, gc=False):
    """Where an update of a replica leads, and whether it may go on."""

    turn: Turn
    generation_hash: str
    now: float
    over: bool = False
    """The set says that all of it is done."""


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
    progress = _current(target, known, opened, same)
    if progress is None or (target.turn is Turn.NONE and progress.update_ended_at is not None):
        return Step(progress)
    selected = progress.ready_pods_selected_to_update
    taken = _taken(selected)
    units = _pods_as_units(clique, taken, selected.current if selected else "", target.now)
    pace = wanted.template.rolling_update
    verdict = judge(units, wanted.min_available, _budget(pace) - _surplus(clique, target.now))
    progress = _settled(progress, target, verdict)
    step = _step(progress, verdict, [clique], pace, target)
    if not verdict.chosen:
        return step
    chosen = PodsSelectedToUpdate(*_selection(taken, verdict.chosen))
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
    progress = _current(target, known, opened, same)
    if progress is None:
        return Step(progress)
    views = [clique.view for cliques in replicas.values() for clique in cliques]
    # Counts are what is seen, also when all is over: who sees late may have been the last to count.
    progress = replace(
        progress,
        updated_pod_cliques_count=sum(view.updated and view.available for view in views),
        total_pod_cliques_count=len(views),
    )
    if target.turn is Turn.NONE and progress.update_ended_at is not None:
        return Step(progress)
    selected = progress.ready_replica_indices_selected_to_update
    taken = _taken(selected)
    units = [_replica_as_unit(index, cliques, taken, target.now) for index, cliques in replicas.items()]
    if selected is not None:
        units.sort(key=lambda unit: unit.name != selected.current)
    surplus = _surplus_replicas(group, pods, target.now)
    verdict = judge(units, group.min_available, _budget(group.template.rolling_update) - len(surplus))
    progress = _settled(progress, target, verdict)
    everybody = [clique for cliques in replicas.values() for clique in cliques]
    step = _step(progress, verdict, everybody, group.template.rolling_update, target, surplus.values())
    if not verdict.chosen:
        return step
    chosen = ReplicasSelectedToUpdate(*_selection(taken, verdict.chosen))
    return replace(step, decided=replace(progress, ready_replica_indices_selected_to_update=chosen))


def by_replica(cliques: Iterable[Enrolled], group: str) -> dict[int, list[Enrolled]]:
    """The cliques of a group, replica by replica."""
    replicas: dict[int, list[Enrolled]] = {}
    for clique in cliques:
        if clique.wanted.group is not None and clique.wanted.group.name == group:
            replicas.setdefault(clique.wanted.group_replica, []).append(clique)
    return replicas


def _budget(pace: RollingUpdate | None) -> int:
    """How many units may be down at once."""
    return 1 if pace is None or pace.max_unavailable is None else max(1, pace.max_unavailable)


def _surplus(clique: Enrolled, now: float) -> int:
    """Pods that a lower count sends away: update and scale-in share one budget."""
    seats = {member.index for member in clique.members}
    leaving = [pod for pod in clique.pods if state.terminating(pod) and state.index_of(pod) not in seats]
    return sum(_lingers_until(pod, now) > 0 for pod in leaving)


def _surplus_replicas(group: Group, pods: Iterable[Pod], now: float) -> dict[int, float]:
    """The same for a group: its replicas that still have pods, with when these are waited for no longer."""
    going: dict[int, float] = {}
    for pod in pods:
        carried = pod.metadata.labels
        index = carried.get(labels.GROUP_REPLICA, "")
        if carried.get(labels.GROUP) == group.name and index.isdecimal() and int(index) >= group.replicas:
            until = _lingers_until(pod, now) if state.terminating(pod) else now + _PATIENCE
            if until:
                going[int(index)] = max(until, going.get(int(index), 0.0))
    return going


def _current(target: Target, known: P | None, opened: P, same: bool) -> P | None:
    """The progress to go on from: what is known, or a new one if it leads elsewhere."""
    if target.turn is Turn.ON_DELETE and not same:
        return replace(opened, update_ended_at=opened.update_started_at)
    if target.over and known is not None:
        # Who saw late may have been the last to tell of another update, or of this one as it was.
        ended = known.update_ended_at or opened.update_started_at
        return replace(opened, update_started_at=known.update_started_at, update_ended_at=ended)
    return opened if target.turn is Turn.ROLLING and not same else known


def _settled(progress: P, target: Target, verdict: Verdict[Name]) -> P:
    """Ended if nothing is left to do, and open again if there is: a pod of the old template came late."""
    over = verdict.over or target.turn is Turn.ON_DELETE
    if over and progress.update_ended_at is None:
        progress = replace(progress, update_ended_at=rfc3339(target.now))
        if isinstance(progress, CliqueProgress):
            return replace(progress, ready_pods_selected_to_update=None)
        return replace(progress, ready_replica_indices_selected_to_update=None)
    if not over and target.turn is Turn.ROLLING:
        return replace(progress, update_ended_at=None)
    return progress


def _step(
    progress: P,
    verdict: Verdict[Name],
    cliques: Sequence[Enrolled],
    pace: RollingUpdate | None,
    target: Target,
    others: Iterable[float] = (),
) -> Step[P]:
    moments = [_lingers_until(pod, target.now) for clique in cliques for pod in clique.pods]
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
            if not _outdated(clique, pod):
                latest = max(latest, moment(pod.metadata.creation_timestamp), state.ready_since(pod))
    return latest


def _taken(selected: PodsSelectedToUpdate | ReplicasSelectedToUpdate | None) -> tuple[Any, ...]:
    """What the update took down, in order."""
    return (*selected.completed, selected.current) if selected else ()


def _selection(taken: tuple[Any, ...], chosen: Sequence[Unit[Any]]) -> tuple[Any, tuple[Any, ...]]:
    """The unit that is taken down now, and those before it."""
    current = chosen[-1].name
    earlier = dict.fromkeys([*taken, *(unit.name for unit in chosen)])
    earlier.pop(current)
    return current, tuple(earlier)


def _pods_as_units(clique: Enrolled, taken: tuple[str, ...], current: str, now: float) -> list[Unit[str]]:
    """The one that was chosen before, then the oldest first."""
    leaving = {state.index_of(pod): _lingers_until(pod, now) for pod in clique.pods if state.terminating(pod)}
    units = [_pod_as_unit(clique, member, taken, leaving.get(member.index, 0.0)) for member in clique.members]
    return sorted(units, key=lambda unit: (unit.name != current, age(unit.pods[0] if unit.pods else None)))


def _pod_as_unit(clique: Enrolled, member: Member, taken: tuple[str, ...], lingers_until: float) -> Unit[str]:
    pod = member.pod
    ready = pod is not None and state.alive(pod) and state.ready(pod)
    ours = not ready and any(succeeds(clique.uid, clique.wanted.name, member, name) for name in taken)
    return Unit(
        member.name,
        outdated=pod is not None and _outdated(clique, pod),
        ready=ready,
        whole=pod is not None,
        lingers_until=lingers_until,
        ours=ours,
        unplaceable=pod is not None and state.unschedulable(pod),
        pods=(pod,) if pod is not None else (),
    )


def _replica_as_unit(
    index: int, cliques: Sequence[Enrolled], taken: tuple[int, ...], now: float
) -> Unit[int]:
    members = [(clique, member.pod) for clique in cliques for member in clique.members]
    pods = tuple(pod for _, pod in members if pod is not None)
    leaving = [pod for clique in cliques for pod in clique.pods if state.terminating(pod)]
    return Unit(
        index,
        outdated=any(pod is not None and _outdated(clique, pod) for clique, pod in members),
        ready=all(clique.view.available for clique in cliques),
        whole=len(pods) == len(members),
        lingers_until=max((_lingers_until(pod, now) for pod in leaving), default=0.0),
        ours=index in taken,
        unplaceable=any(map(state.unschedulable, pods)),
        pods=pods,
    )


def _outdated(clique: Enrolled, pod: Pod) -> bool:
    return pod.metadata.labels.get(labels.TEMPLATE_HASH) != clique.wanted.template_hash


def _lingers_until(pod: Pod, now: float) -> float:
    """Until when a pod that is on its way out is waited for; 0 if it should long have been gone, or stays."""
    if pod.metadata.deletion_timestamp is None:
        return 0.0
    until = moment(pod.metadata.deletion_timestamp) + _PATIENCE
    return until if until > now else 0.0
