"""Writes that take long, as their sets report them while they are in flight."""

from __future__ import annotations

from collections.abc import Callable

from grove.api.errors import Operation, describe
from grove.api.parts import LastError
from grove.kube.latency import CAUSE, REPORTED, Sort
from grove.operator.keys import ReplicaKey, SetKey, WorkloadKey, parent_of
from grove.plan.moments import rfc3339


class SlowWrites:
    """Remembers the slow writes of each set, and since when they are reported."""

    def __init__(self, clock: Callable[[], float], news: Callable[[SetKey], None]) -> None:
        self._clock, self._news = clock, news
        self._writes: dict[SetKey, dict[WorkloadKey, frozenset[Sort]]] = {}
        self._since: dict[SetKey, dict[Sort, float]] = {}

    def note(self, key: object, writes: frozenset[Sort]) -> None:
        """The slow writes of a key; none: they are no longer slow."""
        if not isinstance(key, SetKey | ReplicaKey):
            return
        parent = parent_of(key)
        before = self._of(parent)
        of_set = self._writes.setdefault(parent, {})
        if writes:
            of_set[key] = writes
        else:
            of_set.pop(key, None)
        if not of_set:
            self.forget(parent)
        if before != self._of(parent):
            self._news(parent)

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """What the set reports."""
        since = self._since.setdefault(key, {}) if self._writes.get(key) else {}
        return tuple(_error(sort, since.setdefault(sort, self._clock())) for sort in sorted(self._of(key)))

    def forget(self, key: SetKey) -> None:
        """There is no such set any more, or it has no slow writes."""
        self._writes.pop(key, None)
        self._since.pop(key, None)

    def _of(self, key: SetKey) -> frozenset[Sort]:
        return frozenset().union(*self._writes.get(key, {}).values())


def _error(sort: Sort, since: float) -> LastError:
    code = f"ERR_SLOW_{sort.verb.upper()}"
    words = f"{sort} takes longer than {REPORTED:g} s"
    return LastError(code, describe(Operation.SYNC, code, words, CAUSE), rfc3339(since))
