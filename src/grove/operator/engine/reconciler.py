"""The interface of all kinds of keys to the engine: what is observed, and what is planned from it.

A reconciler adds no loop, no writes and no timers of its own: the engine runs the passes
(`grove.operator.engine.engine`), and watches enqueue the keys (`grove.operator.watches`).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.intents import ObjectRef
from grove.kube.executor.keyed_executor import WriteProblem
from grove.kube.executor.outcome import Outcome
from grove.kube.workqueue.fair_queue import QueueLane
from grove.operator.engine.errors import ChildRef, PassErrors, complete_status
from grove.operator.keys import Key
from grove.plan.model import Plan

K_contra = TypeVar("K_contra", bound=Key, contravariant=True)
S = TypeVar("S")


class PassResult(Struct, frozen=True):
    """What became of a plan."""

    outcome: Outcome
    errors: PassErrors
    changed: bool
    """Whether the errors of the key's own object, or its report, differ from those of the previous pass."""
    remaining: frozenset[ChildRef | None]
    """The cliques and groups with planned writes that are not done; None: the set and all of them."""
    namespace_terminating: bool = False


class Reconciler(Protocol[K_contra, S]):
    """Reconciles the keys of one kind. Subclass it, for the defaults of what most kinds do not need."""

    error_code: str = ""
    """The code of failed creates and patches in `lastErrors`; empty: it follows from the object's kind."""

    async def observe(self, key: K_contra) -> S | None:
        """Everything that the plan depends on, frozen; None if the key does not exist any more, or cannot be
        planned at present."""
        ...

    def plan(self, snapshot: S, now: float) -> Plan:
        """The plan for a snapshot. A pure function: it may run in a thread."""
        ...

    def about(self, snapshot: S) -> ObjectRef | None:  # noqa: ARG002
        """The object that events and errors are about unless they name another."""
        return None

    def is_large(self, key: K_contra) -> bool:  # noqa: ARG002
        """Whether the plan is computed in a thread, because it would block the event loop."""
        return False

    def record(self, key: K_contra, snapshot: S, plan: Plan, result: PassResult) -> None:  # noqa: ARG002
        """Store what the passes of other keys read, and enqueue those keys."""
        return

    def with_errors(self, snapshot: S, plan: Plan, result: PassResult, now: float) -> Plan:  # noqa: ARG002
        """The plan with the errors of its writes in its statuses: in `lastErrors`, by default."""
        if not plan.status_updates:
            return plan
        updates = (complete_status(each, result.errors, result.remaining) for each in plan.status_updates)
        return replace(plan, status_updates=tuple(updates))

    def plan_failure(self, key: K_contra, error: Exception, now: float) -> Exception:  # noqa: ARG002
        """The plan raised an exception. Reports it to the user, and returns what the queue logs."""
        return error

    def record_write_problems(self, key: K_contra, problems: tuple[WriteProblem, ...]) -> None:  # noqa: ARG002
        """Writes are slow or have an unknown outcome; none if that is over."""
        return

    def dropped(self, key: K_contra) -> None:  # noqa: ARG002
        """The key does not exist any more, and its record is dropped next."""
        return

    def lane(self, key: K_contra) -> QueueLane:
        """The lane of a key in the work queue."""
        return QueueLane(key)
