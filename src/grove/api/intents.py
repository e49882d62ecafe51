"""What pure code wants written: data, made without a client, a loop or a clock.

A plan is a sequence of intents. Each says what to write and which earlier intents must have succeeded before;
the executor in `grove.kube` sends them, independent ones at the same time. This module is the whole of what
the two have in common, so that planning never imports the runtime and the runtime no rule of ours.

Some texts can be known only on the way: the UID of an owner that does not exist yet, and names made from it.
`uid_of` and `derived` stand for them in a body or a target, and the executor binds them from the replies.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct


class Target(Struct, frozen=True, gc=False):
    """The object an intent is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        name = repr(self.name) if isinstance(self.name, DeferredValue) else self.name
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


class PatchType(StrEnum):
    """How the server reads a patch."""

    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    JSON = "application/json-patch+json"


class Propagation(StrEnum):
    """What happens to the dependants of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Create(Struct, frozen=True, gc=False):
    """Make an object. A taken name is a question that the executor answers by reading it.

    With `may_exist`, an object of that name is as good as ours and is not read. `write_only` is for kinds that
    our role lets us create but not look at: an object that is in the way is waited for, never read. With
    `dry_run` nothing is made: the server only says whether it would be.
    """

    target: Target
    body: Any
    after: tuple[str, ...] = ()
    may_exist: bool = False
    write_only: bool = False
    dry_run: bool = False

    @property
    def id(self) -> str:
        return f"{'try' if self.dry_run else 'create'} {self.target}"


class Patch(Struct, frozen=True, gc=False):
    """Change an object, or with APPLY declare it.

    To write only what was read, put `metadata.resourceVersion` (or `metadata.uid`) into the body: if the
    object has changed since, the server answers with a conflict and the plan is made again.
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
    """Publish an object's status. It lets creates go first, unless another intent depends on it."""

    target: Target
    body: Any
    type: PatchType = PatchType.MERGE
    after: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"status {self.target}"


class Delete(Struct, frozen=True, gc=False):
    """Delete exactly the object that was seen: give its UID, or its version if nothing may have changed."""

    target: Target
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    propagation: Propagation = Propagation.BACKGROUND
    after: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"delete {self.target}"


class DeleteCollection(Struct, frozen=True, gc=False):
    """Delete all objects of a kind in a namespace that carry the labels."""

    api_version: str
    kind: str
    namespace: str
    selector: str
    grace_seconds: int | None = None
    propagation: Propagation = Propagation.BACKGROUND
    after: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"delete all {self.kind} {self.namespace}/[{self.selector}]"


Intent: TypeAlias = Create | Patch | Status | Delete | DeleteCollection


class DeferredValue(str):
    """A text that depends on a UID which the server has not given yet.

    It is a `str`, so that it fits wherever the text will go; what it shows until then is no valid name and no
    valid UID, so that an unbound one could not pass for either. It cannot be built upon: use `derived`.
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
        """The text, once the UID is known."""
        return uid if self.function is None else self.function(uid, *self.arguments)

    def __repr__(self) -> str:
        return str.__str__(self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self!r} is not known yet: make texts from it with derived(function, uid_of(...), ...)"
        )

    __add__ = __radd__ = __mod__ = __format__ = __str__ = _refuse


def uid_of(intent: Intent) -> str:
    """The UID of the object that the intent makes; name the intent in `after` too."""
    return DeferredValue(intent.id, None, ())


def derived(function: Callable[..., str], uid: str, *arguments: object) -> str:
    """`function(uid, *arguments)`, now if the UID is known, otherwise as soon as it is."""
    if not isinstance(uid, DeferredValue):
        return function(uid, *arguments)
    if uid.function is not None:
        raise TypeError(f"{uid!r} is derived already: derive from uid_of(...)")
    return DeferredValue(uid.intent, function, arguments)


class ObjectRef(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Which object an event speaks of."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class EventRecord(Struct, frozen=True, gc=False):
    """One thing that happened, to be told as a Kubernetes event."""

    regarding: ObjectRef
    reason: str
    note: str
    action: str
    warning: bool = False
    related: ObjectRef | None = None
    reporter: str = ""
