"""The result of a check."""

from __future__ import annotations

from enum import StrEnum

from grove.cli.commands.installation.facts import Unreadable
from grove.views.claim_view import View


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Check(View, frozen=True):
    """One thing that was checked."""

    name: str
    state: State
    message: str
    remedy: str = ""


def ok(name: str, message: str) -> Check:
    return Check(name, State.OK, message)


def warn(name: str, message: str, remedy: str) -> Check:
    return Check(name, State.WARN, message, remedy)


def fail(name: str, message: str, remedy: str) -> Check:
    return Check(name, State.FAIL, message, remedy)


def unknown(name: str, why: Unreadable | str) -> Check:
    """Something that this user may not read is no failure."""
    return Check(
        name, State.UNKNOWN, f"cannot be known: {why.reason if isinstance(why, Unreadable) else why}"
    )
