"""Intents: the writes that a plan asks for, as data that needs no client, event loop or clock.

A plan is a sequence of intents. Each says what to write and which earlier intents must have succeeded before;
the executor in `grove.kube` sends them, independent ones at the same time. This module is all that planning
and executor have in common: planning never imports the runtime, and the runtime imports none of our rules.

Some values are known only during execution: the UID of an owner that does not exist yet, and names derived
from it. `uid_of` and `derived` are placeholders for them in a body or a target, and the executor replaces
them with values from the replies.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct


class Target(Struct, frozen=True, gc=False):
    """The object that an intent writes."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        name = repr(self.name) if isinstance(self.name, DeferredValue) else self.name
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


class ObjectRef(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A reference to the object that an event or an error is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class PatchType(StrEnum):
    """The content type of a patch."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"


class Create(Struct, frozen=True, gc=False):
    """Create an object. If the name is already in use, the executor reads that object to find out whether it
    is the result of the same create.

    With `may_exist`, an existing object of that name counts as success and is not read. `write_only` is for
    kinds that the operator's role allows to create but not to read: an object of another owner with that name
    is waited for, never read. With `dry_run` nothing is created: the API server only validates the object.
    """

    target: Target
    body: Any
    after: tuple[str, ...] = ()
    may_exist: bool = False
    write_only: bool = False
    dry_run: bool = False
    regarding: ObjectRef | None = None
    """The object whose events and `lastErrors` report a failure; None: the object of the plan."""

    @property
    def id(self) -> str:
        return f"{'try' if self.dry_run else 'create'} {self.target}"


class Patch(Struct, frozen=True, gc=False):
    """Change an object.

    To write only what was read, put `metadata.resourceVersion` (or `metadata.uid`) into the body: if the
    object has changed since, the server replies with a conflict and the key is planned again.
    """

    target: Target
    body: Any
    type: PatchType = PatchType.MERGE
    subresource: str = ""
    after: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"patch {self.target}{f' {self.subresource}' if self.subresource else ''}"


class Status(Struct, frozen=True, gc=False):
    """Write the status of an object. Sent after creates, unless another intent depends on it."""

    target: Target
    body: Any
    after: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"status {self.target}"


class Delete(Struct, frozen=True, gc=False):
    """Delete an object; with its UID, exactly the one that was observed."""

    target: Target
    uid: str = ""
    grace_seconds: int | None = None
    after: tuple[str, ...] = ()
    regarding: ObjectRef | None = None
    """The object whose events report a failure; None: the object of the plan."""

    @property
    def id(self) -> str:
        return f"delete {self.target}"


Intent: TypeAlias = Create | Patch | Status | Delete


class DeferredValue(str):
    """A string that depends on a UID which the API server has not assigned yet.

    It is a `str`, so that it fits wherever the value goes. Its content until then is no valid name and no
    valid UID, so that an unresolved one cannot be mistaken for either. It cannot be concatenated or
    formatted: use `derived`.
    """

    intent: str
    function: Callable[..., str] | None
    arguments: tuple[object, ...]

    def __new__(
        cls, intent: str, function: Callable[..., str] | None, arguments: tuple[object, ...]
    ) -> DeferredValue:
        shown = f"uid of {intent}"
        if function is not None:
            shown = f"{function.__name__}({', '.join((shown, *map(repr, arguments)))})"
        text = super().__new__(cls, f"<{shown}>")
        text.intent, text.function, text.arguments = intent, function, arguments
        return text

    def resolve(self, uid: str) -> str:
        """The value, given the UID."""
        return uid if self.function is None else self.function(uid, *self.arguments)

    def __repr__(self) -> str:
        return str.__str__(self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self!r} is not known yet: build strings from it with derived(function, uid_of(...), ...)"
        )

    __add__ = __radd__ = __mod__ = __format__ = __str__ = _refuse


def uid_of(intent: Intent) -> str:
    """The UID of the object that the intent creates; name the intent in `after` too."""
    return DeferredValue(intent.id, None, ())


def derived(function: Callable[..., str], uid: str, *arguments: object) -> str:
    """`function(uid, *arguments)`: at once if the UID is known, otherwise during execution."""
    if not isinstance(uid, DeferredValue):
        return function(uid, *arguments)
    if uid.function is not None:
        raise TypeError(f"{uid!r} is derived already: derive from uid_of(...)")
    return DeferredValue(uid.intent, function, arguments)


class EventRecord(Struct, frozen=True, gc=False):
    """A Kubernetes event to be emitted."""

    regarding: ObjectRef
    reason: str
    note: str
    action: str
    warning: bool = False
    reporter: str = ""
