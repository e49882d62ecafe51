"""The outcome of a plan: one result for each intent, and the summary that the controller needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from grove.api.intents import DeferredValue, Intent
from grove.kube.errors import KubeError, is_namespace_terminating
from grove.kube.executor.deferred_values import DeferredValues


class IntentState(StrEnum):
    """How an intent ended."""

    DONE = "done"
    FOUND = "found"  # the object exists already and is an own one; compare it with the wanted one
    WAITING = "waiting"  # a terminating object has its name, whose DELETED event will enqueue the key
    CONFLICT = "conflict"  # the objects are not those that the plan is based on
    FAILED = "failed"
    SKIPPED = "skipped"  # not sent, because of another intent or because leadership was lost


class Result(Struct, frozen=True, gc=False):
    """The result of one intent; `name` is the resolved name, `uid` is empty if the reply contains none.

    `existing` is the object that was FOUND: a cache whose selector its labels do not match does not have it.
    """

    intent: Intent
    state: IntentState
    name: str = ""
    uid: str = ""
    error: Exception | None = None
    existing: Any = None


class UnknownWrite(Struct, frozen=True, gc=False):
    """A write whose outcome is unknown, with what is needed to read the object later."""

    intent: Intent
    deferred: DeferredValues
    error: KubeError
    reason: str = ""


class Outcome(Struct, frozen=True, gc=False):
    """The results of a plan, in the order of its intents."""

    results: tuple[Result, ...]
    unknown_writes: tuple[UnknownWrite, ...] = ()
    """The key may not be planned before these are resolved (see `keyed_executor`): the cache may be wrong."""

    def joined(self, other: Outcome) -> Outcome:
        """The results of both, as of one plan."""
        return Outcome((*self.results, *other.results))

    @property
    def done(self) -> bool:
        """Whether all intents were done."""
        return all(result.state is IntentState.DONE for result in self.results)

    @property
    def failed(self) -> bool:
        """Whether a write failed, so that the key should back off."""
        return any(result.state is IntentState.FAILED for result in self.results)

    @property
    def outdated(self) -> bool:
        """Whether the plan is based on an old snapshot. The cache has the new objects: plan again."""
        return any(result.state in (IntentState.CONFLICT, IntentState.FOUND) for result in self.results)

    @property
    def errors(self) -> tuple[Exception, ...]:
        """Why writes failed."""
        return tuple(
            result.error
            for result in self.results
            if result.state is IntentState.FAILED and result.error is not None
        )

    @property
    def namespace_terminating(self) -> bool:
        """Whether an object could not be created because its namespace is terminating."""
        return any(is_namespace_terminating(result.error) for result in self.results)

    def resolve(self, value: str) -> str:
        """A name or UID, resolved if it was deferred: for events about a plan that was executed."""
        if not isinstance(value, DeferredValue):
            return value
        uid = next((result.uid for result in self.results if result.intent.id == value.intent), "")
        if not uid:
            raise KeyError(f"{value!r} is not known: '{value.intent}' has created nothing")
        return value.resolve(uid)
