"""Checks what users write into requests: names, before they are looked up. Pure."""

from __future__ import annotations

import re
from http import HTTPStatus

from msgspec.structs import replace

from grove import timing
from grove.dashboard.pages.errors import PageError
from grove.explanation.model import ObjectRef
from grove.explanation.subtree import KINDS, Objects

NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
"""The pattern of names of objects."""
_is_name = re.compile(NAME, re.ASCII).fullmatch


def check_names(**named: str) -> None:
    """Raises PageError (400) for what cannot be the name of an object."""
    for what, text in named.items():
        if not _is_name(text):
            raise PageError(
                HTTPStatus.BAD_REQUEST,
                f"{what} {quoted(text)} is no name of an object: use lower-case letters, digits, - and .",
            )


def quoted(text: str) -> str:
    """What a user has written, short and on one line."""
    cut = text[: timing.QUOTED_VALUE]
    return ascii(cut) + ("..." if len(text) > len(cut) else "")


def known_kind(word: str) -> str | None:
    """The kind of our objects that a word means, written as for `grove explain`, in any case."""
    return KINDS.get(word.lower())


def kind_and_name(written: str) -> tuple[str, str]:
    """`gang/demo-0` as kind and name. Raises PageError (400)."""
    word, _, name = written.rpartition("/")
    kind = known_kind(word)
    if kind is None:
        raise PageError(
            HTTPStatus.BAD_REQUEST, f"name {quoted(written)} has no known kind: write gang/NAME or set/NAME"
        )
    check_names(name=name)
    return kind, name


def known_objects(objects: Objects, *, graphs: bool) -> Objects:
    """The objects of a namespace that a viewer sees: DynamoGraphDeployments need a right of their own."""
    return objects if graphs else replace(objects, graphs=())


def exists(objects: Objects, about: ObjectRef) -> bool:
    """Whether an object of a kind and name is there."""
    return any(
        (kind, meta.namespace, meta.name) == (about.kind, about.namespace, about.name)
        for kind, meta in objects.named()
    )


def missing(about: ObjectRef) -> PageError:
    """The answer for an object that does not exist or that the viewer may not see: it does not say which."""
    return PageError(
        HTTPStatus.NOT_FOUND,
        f"no {about.kind} {about.name} in namespace {about.namespace} that you may see: "
        "it may be deleted, or you may not list it",
    )
