"""Writes that take long or whose outcome is unknown, as last errors in the status of their sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from grove.api.error_codes import Operation, describe
from grove.api.types.common import LastError
from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.keys import ReplicaKey, SetKey, WorkloadKey, parent_of
from grove.plan.timestamps import rfc3339


class SlowWrites:
    """Keeps the problems with the writes of each set, and since when they exist. `on_change` is called with a
    set whose problems changed."""

    def __init__(self, clock: Callable[[], float], on_change: Callable[[SetKey], None]) -> None:
        self._clock, self._on_change = clock, on_change
        self._known: dict[SetKey, dict[WorkloadKey, tuple[WriteProblem, ...]]] = {}
        self._errors: dict[SetKey, dict[str, LastError]] = {}

    def record(self, key: object, problems: tuple[WriteProblem, ...]) -> None:
        """Store the problems with the writes of a key; none if the writes are back to normal."""
        if not isinstance(key, SetKey | ReplicaKey):
            return
        parent = parent_of(key)
        of_set = self._known.setdefault(parent, {})
        if problems:
            of_set[key] = problems
        else:
            of_set.pop(key, None)
        before = self._errors.get(parent, {})
        # Of many replicas with the same problem, the first determines the cause and the timestamp.
        found = {each.message: each for each in reversed([*chain.from_iterable(of_set.values())])}
        after = {text: before.get(text) or self._error(found[text]) for text in sorted(found)}
        self._errors[parent] = after
        if not after:
            self.forget(parent)
        if before.keys() != after.keys():
            self._on_change(parent)

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """The last errors of a set for its slow or unknown writes."""
        return tuple(self._errors.get(key, {}).values())

    def forget(self, key: SetKey) -> None:
        """Drop the state of a set that no longer exists, or whose writes have no problems."""
        self._known.pop(key, None)
        self._errors.pop(key, None)

    def _error(self, problem: WriteProblem) -> LastError:
        code = f"ERR_{problem.code}"
        description = describe(Operation.SYNC, code, problem.message, problem.cause)
        return LastError(code, description, rfc3339(self._clock()))
