"""Writes that take long or whose outcome is unknown, as their sets report them meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from grove.api.error_codes import Operation, describe
from grove.api.types.common import LastError
from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.keys import ReplicaKey, SetKey, WorkloadKey, parent_of
from grove.plan.timestamps import rfc3339


class SlowWrites:
    """Remembers what is wrong with the writes of each set, and since when."""

    def __init__(self, clock: Callable[[], float], news: Callable[[SetKey], None]) -> None:
        self._clock, self._news = clock, news
        self._known: dict[SetKey, dict[WorkloadKey, tuple[WriteProblem, ...]]] = {}
        self._errors: dict[SetKey, dict[str, LastError]] = {}

    def note(self, key: object, troubles: tuple[WriteProblem, ...]) -> None:
        """What is wrong with the writes of a key; nothing: they are as usual again."""
        if not isinstance(key, SetKey | ReplicaKey):
            return
        parent = parent_of(key)
        of_set = self._known.setdefault(parent, {})
        if troubles:
            of_set[key] = troubles
        else:
            of_set.pop(key, None)
        before = self._errors.get(parent, {})
        # Of many replicas that have one trouble, the first says why, and since when.
        found = {each.words: each for each in reversed([*chain.from_iterable(of_set.values())])}
        after = {words: before.get(words) or self._error(found[words]) for words in sorted(found)}
        self._errors[parent] = after
        if not after:
            self.forget(parent)
        if before.keys() != after.keys():
            self._news(parent)

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """What the set reports."""
        return tuple(self._errors.get(key, {}).values())

    def forget(self, key: SetKey) -> None:
        """There is no such set any more, or nothing is wrong with its writes."""
        self._known.pop(key, None)
        self._errors.pop(key, None)

    def _error(self, trouble: WriteProblem) -> LastError:
        code = f"ERR_{trouble.code}"
        words = describe(Operation.SYNC, code, trouble.words, trouble.cause)
        return LastError(code, words, rfc3339(self._clock()))
