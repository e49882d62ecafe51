"""Evaluates label selectors as the server does, so that the reply of a write is cached only if the watch of
the cache would deliver the object. Supports all forms of the text syntax: `a=b`, `a==b`, `a!=b`, `a`, `!a`,
`a in (b, c)`, `a notin (b)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Labels = str | Mapping[str, str]
Requirement = Callable[[Mapping[str, str]], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<how>!=|==?)\s*(?P<values>\S*)$")
_EXISTS = re.compile(r"^(?P<how>!?)\s*(?P<key>[^\s!=()]+)$")
_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")


def render(labels: Labels) -> str:
    """The selector in text form; a mapping means equality with each of its labels."""
    return labels if isinstance(labels, str) else ",".join(f"{key}={value}" for key, value in labels.items())


def parse(labels: Labels) -> Requirement:
    """A function that says whether labels match the selector. Raises ValueError for an invalid selector."""
    requirements = [
        _requirement(part.strip()) for part in _COMMA_OUTSIDE_BRACKETS.split(render(labels)) if part
    ]
    return lambda found: all(requirement(found) for requirement in requirements)


def _requirement(part: str) -> Requirement:
    if match := _SET.match(part) or _EQUAL.match(part):
        key = match["key"]
        values = frozenset(value.strip() for value in match["values"].split(","))
        if match["how"] in ("notin", "!="):
            return lambda found: found.get(key) not in values
        return lambda found: found.get(key) in values
    if match := _EXISTS.match(part):
        key = match["key"]
        return (lambda found: key not in found) if match["how"] else (lambda found: key in found)
    raise ValueError(f"label selector {part!r} is not one: write key=value, key, !key or key in (a, b)")
