"""The order in which a plan's intents are sent: after those they depend on, and writes before statuses.

Used by the executor. It sends nothing itself, so that any graph can be tested without a server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grove.api.intents import Intent, Status
from grove.kube.executor.write_limiter import WritePriority


class IntentStep:
    """An intent, how many dependencies it still waits for, and the steps that wait for it."""

    __slots__ = ("dependents", "id", "index", "intent", "unmet")

    def __init__(self, intent: Intent, index: int) -> None:
        self.intent = intent
        self.index = index
        self.id = intent.id
        self.unmet = len(intent.after)
        self.dependents: list[IntentStep] = []

    @property
    def priority(self) -> WritePriority:
        """WRITE, except for a status that no other intent waits for: that is only a report."""
        if isinstance(self.intent, Status) and not self.dependents:
            return WritePriority.STATUS
        return WritePriority.WRITE


class DependencyGraph:
    """Which steps can be sent now, and which never will be."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._ready: tuple[deque[IntentStep], deque[IntentStep]] = (deque(), deque())
        steps = self._link_dependencies(intents)
        for step in steps:
            if not step.unmet:
                self._ready[step.priority].append(step)

    def __len__(self) -> int:
        """How many steps can be sent now."""
        return len(self._ready[0]) + len(self._ready[1])

    def pop_ready(self) -> IntentStep | None:
        """The next step to send; None if all remaining ones wait for one that is being sent."""
        for ready in self._ready:
            if ready:
                return ready.popleft()
        return None

    def mark_done(self, step: IntentStep) -> None:
        """Make the steps ready that waited only for this one."""
        for dependent in step.dependents:
            dependent.unmet -= 1
            if not dependent.unmet:
                self._ready[dependent.priority].append(dependent)

    def skip_dependents(self, step: IntentStep) -> Iterator[IntentStep]:
        """Yield each step that is never sent because this one did not succeed, each once in the whole run."""
        remaining = list(step.dependents)
        while remaining:
            dependent = remaining.pop()
            if dependent.unmet >= 0:
                dependent.unmet = -1
                remaining += dependent.dependents
                yield dependent

    @staticmethod
    def _link_dependencies(intents: Sequence[Intent]) -> list[IntentStep]:
        steps: dict[str, IntentStep] = {}
        for index, intent in enumerate(intents):
            step = IntentStep(intent, index)
            for dependency in intent.after:
                if dependency not in steps:
                    raise ValueError(
                        f"{step.id} comes after '{dependency}', which is not planned before it: list it first"
                    )
                steps[dependency].dependents.append(step)
            if step.id in steps:
                raise ValueError(f"'{step.id}' is planned twice: merge the two intents")
            steps[step.id] = step
        return list(steps.values())
