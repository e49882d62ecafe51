"""In which order a plan's intents may go: after what they depend on, and deeds before observations.

Pure bookkeeping, apart from the executor so that any graph can be tried without sending anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grove.api.intents import Intent, Status
from grove.kube.limiter import Urgency


class Step:
    """An intent on its way: how many dependencies it still waits for, and who waits for it."""

    __slots__ = ("dependents", "id", "index", "intent", "missing")

    def __init__(self, intent: Intent, index: int) -> None:
        self.intent = intent
        self.index = index
        self.id = intent.id
        self.missing = len(intent.after)
        self.dependents: list[Step] = []

    @property
    def urgency(self) -> Urgency:
        """A status that others wait for is bookkeeping before a deed; any other only tells what is."""
        if isinstance(self.intent, Status) and not self.dependents:
            return Urgency.OBSERVATION
        return Urgency.DEED


class Agenda:
    """The steps that may go now, and those that will never go."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._ready: tuple[deque[Step], deque[Step]] = (deque(), deque())
        steps = self._linked(intents)
        for step in steps:
            if not step.missing:
                self._ready[step.urgency].append(step)

    def __len__(self) -> int:
        """How many steps may go now."""
        return len(self._ready[0]) + len(self._ready[1])

    def take(self) -> Step | None:
        """The next step that may go; None if all that are left wait for one that is under way."""
        for ready in self._ready:
            if ready:
                return ready.popleft()
        return None

    def succeed(self, step: Step) -> None:
        """Let go what waited only for this step."""
        for dependent in step.dependents:
            dependent.missing -= 1
            if not dependent.missing:
                self._ready[dependent.urgency].append(dependent)

    def abandon(self, step: Step) -> Iterator[Step]:
        """Yield each step that can never go because this one did not succeed, once over the whole run."""
        reach = list(step.dependents)
        while reach:
            dependent = reach.pop()
            if dependent.missing >= 0:
                dependent.missing = -1
                reach += dependent.dependents
                yield dependent

    @staticmethod
    def _linked(intents: Sequence[Intent]) -> list[Step]:
        steps: dict[str, Step] = {}
        for index, intent in enumerate(intents):
            step = Step(intent, index)
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
