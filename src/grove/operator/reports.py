"""What the latest pass over each replica found: the set adds it up."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.errors import ErrorCode, Operation, describe
from grove.api.parts import LastError
from grove.api.sets import PodCliqueSet
from grove.kube.line import Place
from grove.operator.blame import Blame, Part
from grove.operator.keys import Key, ReplicaKey, SetKey, parent_of
from grove.plan.model import Plan, Standing
from grove.plan.moments import rfc3339
from grove.plan.whole import Report


class Reports:
    """Remembers the report of every replica."""

    def __init__(self) -> None:
        self._known: dict[SetKey, dict[int, Report]] = {}
        self._of_sets: dict[SetKey, tuple[LastError, ...]] = {}

    def of(self, key: SetKey) -> Mapping[int, Report]:
        """Those of one set, by replica."""
        return self._known.get(key, {})

    def place(self, key: Key) -> Place:
        """Sets take turns, however many replicas they have; replicas that were begun go before new ones."""
        if not isinstance(key, ReplicaKey):
            return Place(key)
        parent = parent_of(key)
        return Place(("replicas", parent), begun=key.replica in self.of(parent))

    def of_set(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors of the latest pass over the set itself."""
        return self._of_sets.get(key, ())

    def note_set(self, key: SetKey, errors: Blame) -> bool:
        """The errors of a pass over the set itself. Returns whether they are others than before."""
        news = errors.differ_from(self.of_set(key))
        self._of_sets[key] = errors.of_set
        return news

    def note(
        self,
        key: ReplicaKey,
        workload: PodCliqueSet | None,
        plan: Plan,
        errors: Blame,
        left: frozenset[Part | None],
    ) -> bool:
        """What a plan found, with what is `left` of it to do. Returns whether that is news for the set. What
        only cliques and groups lack is theirs to tell."""
        if plan.standing is None or workload is None:
            return self._known.get(parent_of(key), {}).pop(key.replica, None) is not None
        generation = 0 if None in left else workload.metadata.generation
        return self._learn(key, Report(generation, plan.standing, errors.of_set))

    def admit(self, key: ReplicaKey, mistake: Exception, now: float) -> bool:
        """That no plan can be made for a replica: its user has no other way to learn of it. Returns whether
        that is news for the set; how the replica stands is what was known before."""
        known = self.of(parent_of(key)).get(key.replica)
        what = f"replica {key.replica} cannot be planned: correct the template, or see the operator's log"
        why = str(mistake) if type(mistake) is ValueError else f"{type(mistake).__name__}: {mistake}"
        words = describe(Operation.SYNC, ErrorCode.PLAN_REPLICA, what, why)
        if known is not None and words in {error.description for error in known.errors}:
            return False
        standing = known.standing if known is not None else Standing()
        return self._learn(
            key, Report(0, standing, (LastError(ErrorCode.PLAN_REPLICA, words, rfc3339(now)),))
        )

    def forget(self, key: SetKey) -> None:
        """There is no such set any more."""
        self._known.pop(key, None)
        self._of_sets.pop(key, None)

    def _learn(self, key: ReplicaKey, report: Report) -> bool:
        reports = self._known.setdefault(parent_of(key), {})
        news = reports.get(key.replica) != report
        reports[key.replica] = report
        return news
