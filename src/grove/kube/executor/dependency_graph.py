"""In which order a plan's intents may go: after what they depend on, and deeds before observations.

Pure bookkeeping, apart from the executor so that any graph can be tried without sending anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grove.api.intents import Intent, Status
from grove.kube.executor.write_limiter import WritePriority


class IntentStep:
    """An intent on its way: how many dependencies it still waits for, and who waits for it."""

    __slots__ = ("dependents", "id", "index", "intent", "unmet")

    def __init__(self, intent: Intent, index: int) -> None:
        self.intent = intent
        self.index = index
        self.id = intent.id
        self.unmet = len(intent.after)
        self.dependents: list[IntentStep] = []

    @property
    def priority(self) -> WritePriority:
        """A status that others wait for is bookkeeping before a deed; any other only tells what is."""
        if isinstance(self.intent, Status) and not self.dependents:
            return WritePriority.STATUS
        return WritePriority.WRITE


class DependencyGraph:
    """The steps that may go now, and those that will never go."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._ready: tuple[deque[IntentStep], deque[IntentStep]] = (deque(), deque())
        steps = self._link_dependencies(intents)
        for step in steps:
            if not step.unmet:
                self._ready[step.priority].append(step)

    def __len__(self) -> int:
        """How many steps may go now."""
        return len(self._ready[0]) + len(self._ready[1])

    def pop_ready(self) -> IntentStep | None:
        """The next step that may go; None if all that are left wait for one that is under way."""
        for ready in self._ready:
            if ready:
                return ready.popleft()
        return None

    def mark_done(self, step: IntentStep) -> None:
        """Let go what waited only for this step."""
        for dependent in step.dependents:
            dependent.unmet -= 1
            if not dependent.unmet:
                self._ready[dependent.priority].append(dependent)

    def skip_dependents(self, step: IntentStep) -> Iterator[IntentStep]:
        """Yield each step that can never go because this one did not succeed, once over the whole run."""
        unreached = list(step.dependents)
        while unreached:
            dependent = unreached.pop()
            if dependent.unmet >= 0:
                dependent.unmet = -1
                unreached += dependent.dependents
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
                raise ValueError(f"'{step.id}' is planned twice: make one intent of the two")
            steps[step.id] = step
        return list(steps.values())
