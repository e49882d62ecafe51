"""An update as part of a replica's plan: what is decided is written down, then members are replaced.

the set confirmed -> status of clique or group written, pods that are not ready confirmed
  -> gang names the successors -> pods deleted -> their successors created
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.groups import PodCliqueScalingGroup
from grove.api.pods import Pod
from grove.plan.enrolment import Enrolled, by_replica
from grove.plan.expand import Clique, Shape
from grove.plan.hashes import is_ours
from grove.plan.progress import CliqueProgress, GroupProgress, Target
from grove.plan.rollout import Step, roll_clique, roll_group
from grove.plan.snapshot import Snapshot
from grove.plan.targets import confirm_pod, record
from grove.plan.turns import Turn, is_over, turn_of
from grove.plan.writes import Writes

AnyStep = Step[CliqueProgress] | Step[GroupProgress]
Enrol = Callable[[Clique, frozenset[str]], Enrolled]


class Renewal:
    """The update of one replica: its steps, and the cliques as they are after them. Whatever else is to be
    done about a clique comes first, for an object is written once in a plan."""

    def __init__(self, snapshot: Snapshot, writes: Writes, enrol: Enrol) -> None:
        self._snapshot, self._writes, self._enrol = snapshot, writes, enrol
        self.of_cliques: dict[str, Step[CliqueProgress]] = {}
        self.of_groups: dict[str, Step[GroupProgress]] = {}

    def plan(self, shape: Shape, cliques: dict[str, Enrolled], now: float) -> dict[str, Enrolled]:
        """Plan the next steps, if it is this replica's turn; the cliques with their members of then."""
        turn = turn_of(self._snapshot.workload, self._snapshot.index, shape.generation_hash)
        over = is_over(self._snapshot.workload, shape.generation_hash)
        target = Target(turn, shape.generation_hash, now, over)
        renewed = dict(cliques)
        for name, clique in cliques.items():
            alone = clique.wanted.group is None or turn is Turn.ON_DELETE
            if alone and clique.found is not None:
                self.of_cliques[name] = step = roll_clique(target, clique.found, clique)
                renewed |= self._replaced(clique.found, step, [clique])
        for group in shape.groups:
            if (known := self._snapshot.groups.get(group.name)) is not None:
                replicas = by_replica(cliques.values(), group.name)
                step_of_group = roll_group(target, known, group, replicas, self._snapshot.pods)
                self.of_groups[group.name] = step_of_group
                inside = [clique for members in replicas.values() for clique in members]
                renewed |= self._replaced(known, step_of_group, inside)
        return renewed

    @property
    def running(self) -> int:
        """How many updates of cliques and groups are under way."""
        return sum(step.running for step in self._steps)

    @property
    def stuck(self) -> int:
        """How many of them have come no further for longer than they may."""
        return sum(step.overdue for step in self._steps)

    @property
    def wake_at(self) -> float | None:
        return min((step.wake_at for step in self._steps if step.wake_at is not None), default=None)

    @property
    def _steps(self) -> list[AnyStep]:
        return [*self.of_cliques.values(), *self.of_groups.values()]

    def _replaced(
        self,
        found: PodClique | PodCliqueScalingGroup,
        step: AnyStep,
        cliques: Iterable[Enrolled],
    ) -> dict[str, Enrolled]:
        """The cliques of which members are replaced, to be so after the writes that say it."""
        touched = [clique for clique in cliques if step.going & {*clique.membership.references}]
        if not touched or self._writes.about(found) or any(map(self._busy, touched)):
            return {}
        fences = (
            self._writes.confirm(self._snapshot.workload),
            *(self._writes.add(confirm_pod(pod)) for pod in _doubtful(step)),
            self._record(found, step),
        )
        again = [
            self._enrol(clique.wanted, step.going & {*clique.membership.references}) for clique in touched
        ]
        return {clique.wanted.name: replace(clique, fences=fences) for clique in again}

    def _record(self, found: PodClique | PodCliqueScalingGroup, step: AnyStep) -> str:
        """That it is written down which members go, and that it still stands there if it does already."""
        if step.decided == found.status.update_progress:
            return self._writes.confirm(found)
        return self._writes.add(record(found, replace(found.status, update_progress=step.decided)))

    def _busy(self, clique: Enrolled) -> bool:
        """Members come or go already, or the clique itself is to be mended."""
        membership = clique.membership
        if membership.gives_up or membership.leaving or clique.found is None:
            return True
        return bool(self._writes.about(clique.found))


def _doubtful(step: AnyStep) -> list[Pod]:
    """Who goes for what may be over: who was not ready may be by now, and whose hash was upstream's may have
    been given ours."""
    unready = {pod.metadata.name for pod in step.unready}
    return [pod for pod in step.outgoing if pod.metadata.name in unready or not is_ours(_hash_of(pod))]


def _hash_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(labels.TEMPLATE_HASH)
