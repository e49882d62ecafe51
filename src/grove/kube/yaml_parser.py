"""The YAML parser for all files that users write.

YAML 1.1 reads `no` and `on` as booleans, `1:30` as ninety, `2026-01-01` as a date and `010` as eight. Users
who write such words in a configuration mean text. Here only `true`, `false` and `null` are not text, and, if
the caller asks for them, numbers in the notation of JSON. JSON is YAML, so it is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, Event, NodeEvent
from yaml.nodes import ScalarNode

from grove import timing
from grove.api.json_depth import MAX_DEPTH, TOO_DEEP
from grove.kube.errors import ConfigError


class YamlError(ConfigError):
    """The text is not YAML; the message names the line and the problem."""


class _TextLoader(yaml.CSafeLoader):
    """Reads no numbers: a token of digits stays text."""


class _TextAndNumberLoader(_TextLoader):
    """Reads numbers in the notation of JSON, which cannot be mistaken for a time or a version."""


def _resolve(loader: type[yaml.CSafeLoader], tag: str, first: str, pattern: str) -> None:
    loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*first])


_TextLoader.yaml_implicit_resolvers = {}
_resolve(_TextLoader, "bool", "tf", "true|false")
_resolve(_TextLoader, "null", "n~", "null|~")
_TextLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^$"), [""])
_resolve(_TextLoader, "merge", "<", "<<")

_DIGITS = "-0123456789"
_INTEGER = r"-?(?:0|[1-9]\d*)"
_resolve(_TextAndNumberLoader, "int", _DIGITS, _INTEGER)
_resolve(_TextAndNumberLoader, "float", _DIGITS, rf"{_INTEGER}(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)")

_TYPES = {"str", "int", "float", "bool", "null", "seq", "map"}
"""What JSON has as well. YAML has tags for dates, sets and bytes, which no object of Kubernetes contains."""


def _checked(
    construct: Callable[[Any, ScalarNode], object], name: str
) -> Callable[[Any, ScalarNode], object]:
    """The constructor, with an error that names the line: those of PyYAML raise what Python's types do."""

    def checked(loader: Any, node: ScalarNode) -> object:
        try:
            return construct(loader, node)
        except (ValueError, LookupError):
            problem = f"{str(node.value)[: timing.QUOTED_VALUE]!r} is not of type {name}"
            raise ConstructorError(None, None, problem, node.start_mark) from None

    return checked


def _constructors() -> dict[str | None, Any]:
    found: dict[str | None, Any] = yaml.CSafeLoader.yaml_constructors
    tags = {name: f"tag:yaml.org,2002:{name}" for name in _TYPES}
    checked: dict[str | None, Any] = {
        tags[name]: _checked(found[tags[name]], name) for name in ("int", "float", "bool")
    }
    return {None: found[None], **{tag: found[tag] for tag in tags.values()}, **checked}


_TextLoader.yaml_constructors = _constructors()


def parse(text: str, *, numbers: bool = True) -> object:
    """The only document in the text, None if it is empty. Raises YamlError."""
    try:
        _check_size(text)
        return yaml.load(text, _TextAndNumberLoader if numbers else _TextLoader)  # noqa: S506 - safe loaders, narrowed
    except yaml.YAMLError as problem:
        raise _error(problem) from None


def parse_all(text: str) -> list[object]:
    """The documents in the text, without empty ones. Raises YamlError."""
    try:
        _check_size(text)
        return [each for each in yaml.load_all(text, _TextAndNumberLoader) if each is not None]
    except yaml.YAMLError as problem:
        raise _error(problem) from None


class _Size:
    """How many values a node stands for, and how deeply they nest, with those that aliases repeat."""

    def __init__(self, anchor: str | None) -> None:
        self.anchor, self.values, self.depth = anchor, 1, 1

    def add(self, values: int, depth: int, event: Event) -> None:
        self.values, self.depth = self.values + values, max(self.depth, depth + 1)
        if self.values > timing.YAML_VALUES:
            raise _refused(f"with its aliases it has more than {timing.YAML_VALUES} values", event)


def _check_size(text: str) -> None:
    """Refuse text that the decoder would overflow the stack with, or expand to more than memory holds. Raises
    YAMLError. Events are read without recursion."""
    anchors: dict[str | None, _Size] = {}
    stack = [_Size(None)]
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, CollectionEndEvent):
            done = stack.pop()
            stack[-1].add(done.values, done.depth, event)
            anchors[done.anchor] = done
        elif isinstance(event, CollectionStartEvent):
            stack.append(_Size(event.anchor))
            anchors.pop(event.anchor, None)
        elif isinstance(event, AliasEvent):
            if any(each.anchor == event.anchor for each in stack):
                raise _refused(f"alias {event.anchor} is inside of its own value", event)
            found = anchors.get(event.anchor, _Size(None))
            stack[-1].add(found.values, found.depth, event)
        elif isinstance(event, NodeEvent):
            stack[-1].add(1, 0, event)
        if max(len(stack), stack[-1].depth) > MAX_DEPTH:
            raise _refused(TOO_DEEP, event)


def _refused(problem: str, event: Event) -> yaml.YAMLError:
    mark: Any = event.start_mark
    return ConstructorError(None, None, problem, mark)


def _error(problem: yaml.YAMLError) -> YamlError:
    mark = getattr(problem, "problem_mark", None)
    where = f" at line {mark.line + 1}" if mark else ""
    why = getattr(problem, "problem", None) or "unreadable"
    return YamlError(f"not YAML{where} ({why})")
