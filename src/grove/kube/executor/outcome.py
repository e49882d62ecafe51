"""What became of a plan: one result per intent, and the few questions that are asked about all of them."""

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
    FOUND = "found"  # it exists already and is ours; compare it with what was wanted
    WAITING = "waiting"  # its name is held by an object on its way out, whose DELETED event will wake us
    CONFLICT = "conflict"  # the world is not what the plan was made from
    FAILED = "failed"
    SKIPPED = "skipped"  # not sent, because of another intent or because we may not write any more


class Result(Struct, frozen=True, gc=False):
    """What became of one intent; `name` is the bound name, `uid` is empty if the server told none.

    `existing` is the object that was FOUND: with labels that no cache selects by, it is seen nowhere else.
    """

    intent: Intent
    state: IntentState
    name: str = ""
    uid: str = ""
    error: Exception | None = None
    existing: Any = None


class UnknownWrite(Struct, frozen=True, gc=False):
    """A write whose outcome is unknown: what is needed to read the object later."""

    intent: Intent
    deferred: DeferredValues
    error: KubeError
    why: str = ""


class Outcome(Struct, frozen=True, gc=False):
    """What became of a plan, in the order of its intents."""

    results: tuple[Result, ...]
    doubts: tuple[UnknownWrite, ...] = ()
    """No plan may be made before these are resolved (see `keyed`): the cache may be wrong about them."""

    @property
    def done(self) -> bool:
        """Whether all of it was done."""
        return all(result.state is IntentState.DONE for result in self.results)

    @property
    def failed(self) -> bool:
        """Whether a write failed, so that the key should back off."""
        return any(result.state is IntentState.FAILED for result in self.results)

    @property
    def outdated(self) -> bool:
        """Whether the plan was made from an old view. The cache has the new one: plan again."""
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
        """Whether something could not be made because the namespace is on its way out: nothing more can."""
        return any(is_namespace_terminating(result.error) for result in self.results)

    def resolve(self, value: str) -> str:
        """A name or UID, bound if it was late: for what is told about the plan once it is carried out."""
        if not isinstance(value, DeferredValue):
            return value
        uid = next((result.uid for result in self.results if result.intent.id == value.intent), "")
        if not uid:
            raise KeyError(f"{value!r} is not known: '{value.intent}' has made nothing")
        return value.resolve(uid)

    def result_of(self, intent: Intent) -> Result:
        """The result of one intent."""
        for result in self.results:
            if result.intent is intent:
                return result
        raise KeyError(f"{intent.id} is not part of this plan")
