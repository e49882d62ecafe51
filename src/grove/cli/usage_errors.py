"""Errors of the command line as one line for users: what is wrong, and what to type instead."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from grove.explanation.suggestions import closest

_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "yes or no", Path: "a path"}


def usage_error(error: CycloptsError) -> str:
    """The line to print for an error of the command line."""
    match error:
        case UnknownCommandError(unused_tokens=[name, *_], app=App() as app):
            return _unknown_command(name, error.command_chain or (), command_names(app))
        case UnusedCliTokensError(unused_tokens=[*unused]):
            what = "unexpected argument" if len(unused) == 1 else "unexpected arguments"
            return f"{what} {' '.join(unused)}: {_help(error)} shows what it takes"
        case UnknownOptionError(token=token):
            return _unknown_option(error, token.keyword or token.value)
        case CoercionError(token=token, target_type=kind) if token is not None:
            return f"{_name(error, token.keyword)} {token.value}: {_expected(kind)}"
        case MissingArgumentError(keyword=None):
            return f"{_name(error)} is missing: {_help(error)} describes it"
        case MissingArgumentError(keyword=keyword):
            return f"{keyword}: needs a value: {_help(error)} describes it"
        case RepeatArgumentError(token=token):
            return f"{token.keyword}: given more than once: leave out all but one"
    return f"{' '.join(str(error).split())} {_help(error)} shows what it takes"


def command_names(app: App) -> list[str]:
    """The names of all commands of an application, sorted."""
    return sorted(name for name in app if not name.startswith("-"))


def _unknown_command(name: str, chain: Iterable[str], known: list[str]) -> str:
    problem = f"unknown command {' '.join((*chain, name))}"
    if not known:
        return f"{problem}: grove help {' '.join(chain)} shows what that command takes"
    close = closest(name, known)
    hint = f"did you mean {close}? " if close else ""
    return f"{problem}: {hint}commands: {', '.join(known)}"


def _unknown_option(error: UnknownOptionError, name: str) -> str:
    known = [option for argument in error.argument_collection if argument.parse for option in argument.names]
    close = closest(name, known)
    hint = f"did you mean {close}? " if close else ""
    return f"unknown option {name}: {hint}{_help(error)} lists all"


def _expected(kind: Any) -> str:
    if get_origin(kind) is Literal:
        *others, last = map(str, get_args(kind))
        return f"choose {', '.join(others)} or {last}" if others else f"write {last}"
    return f"write {_KINDS.get(kind, 'another value')}"


def _name(error: CycloptsError, keyword: str | None = None) -> str:
    if keyword or error.argument is None:
        return keyword or "the argument"
    return error.argument.name


def _command(error: CycloptsError) -> str:
    return " ".join(("grove", *(error.command_chain or ())))


def _help(error: CycloptsError) -> str:
    return f"{_command(error)} --help"
