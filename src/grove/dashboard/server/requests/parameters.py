"""Query parameters of requests: bounded and checked, before anything is looked up. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus

from multidict import MultiMapping

from grove import timing
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.names import NAME as NAME_PATTERN
from grove.dashboard.pages.names import known_kind, quoted
from grove.explanation.reading import RESOURCES

_NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


class Parameter:
    """One parameter: what it must look like, and how an error describes that."""

    def __init__(self, accepts: Callable[[str], object], form: str, *, optional: bool = False) -> None:
        self.accepts, self.form, self.optional = accepts, form, optional


def _pattern(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII).fullmatch


NAMESPACE = Parameter(_pattern(_NAMESPACE), "the name of a namespace")
NAME = Parameter(_pattern(NAME_PATTERN), "the name of an object")
NODE = Parameter(_pattern(NAME_PATTERN), "the name of a node")
SUBJECT = Parameter(_pattern(f"[A-Za-z]{{1,40}}/{NAME_PATTERN}"), "gang/NAME or set/NAME")
KIND = Parameter(known_kind, f"one of {', '.join(map(str.lower, RESOURCES))}")
VERSION = Parameter(_pattern(r"[A-Za-z0-9_.:=-]{1,200}"), "the version of a picture", optional=True)
TEXT = Parameter(
    lambda text: 0 < len(text) <= timing.LONGEST_SEARCH and text.isprintable(),
    f"1 to {timing.LONGEST_SEARCH} printable characters",
)


def read(query: MultiMapping[str], wanted: Mapping[str, Parameter]) -> dict[str, str]:
    """The wanted parameters of a query; an optional one that is missing is empty. Raises PageError (400)."""
    for name in query:
        if name not in wanted:
            raise _bad(f"unknown parameter {quoted(name)}: {_known(wanted)}")
    return {name: _value(query, name, parameter) for name, parameter in wanted.items()}


def _value(query: MultiMapping[str], name: str, parameter: Parameter) -> str:
    values = query.getall(name, [])
    if len(values) > 1:
        raise _bad(f"parameter {name} is given {len(values)} times: give it once")
    if not values and parameter.optional:
        return ""
    if not values:
        raise _bad(f"parameter {name} is missing: give {parameter.form}")
    if not parameter.accepts(values[0]):
        raise _bad(f"parameter {name} is {quoted(values[0])}: give {parameter.form}")
    return values[0]


def _known(wanted: Mapping[str, Parameter]) -> str:
    return f"use {', '.join(wanted)}" if wanted else "there is none"


def _bad(line: str) -> PageError:
    return PageError(HTTPStatus.BAD_REQUEST, line)
