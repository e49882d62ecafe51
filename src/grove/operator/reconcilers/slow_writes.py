"""Writes that take long or whose outcome is unknown, as last errors in the status of their sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from grove.api.error_codes import Operation, describe
from grove.api.types.common import LastError
from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import SetKey, WorkloadKey, parent_of
from grove.plan.timestamps import rfc3339


class SlowWrites:
    """Stores the problems with the writes of each set, and since when they exist, in its record. `on_change`
    is called with a set whose problems changed."""

    def __init__(
        self, states: KeyStates, clock: Callable[[], float], on_change: Callable[[SetKey], None]
    ) -> None:
        self._states, self._clock, self._on_change = states, clock, on_change

    def record(self, key: WorkloadKey, problems: tuple[WriteProblem, ...]) -> None:
        """Store the problems with the writes of a key; none if the writes are back to normal."""
        state = self._states.of(parent_of(key))
        if problems:
            state.write_problems[key] = problems
        else:
            state.write_problems.pop(key, None)
        before = state.write_errors
        # Of many replicas with the same problem, the first determines the cause and the timestamp.
        found = {
            each.message: each for each in reversed([*chain.from_iterable(state.write_problems.values())])
        }
        state.write_errors = {text: before.get(text) or self._error(found[text]) for text in sorted(found)}
        if before.keys() != state.write_errors.keys():
            self._on_change(parent_of(key))

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """The last errors of a set for its slow or unknown writes."""
        state = self._states.find(key)
        return tuple(state.write_errors.values()) if state is not None else ()

    def _error(self, problem: WriteProblem) -> LastError:
        code = f"ERR_{problem.code}"
        description = describe(Operation.SYNC, code, problem.message, problem.cause)
        return LastError(code, description, rfc3339(self._clock()))
