"""The YAML parser for all files that users write.

YAML 1.1 reads `no` and `on` as booleans, `1:30` as ninety, `2026-01-01` as a date and `010` as eight. Users
who write such words in a configuration mean text. Here only `true`, `false` and `null` are not text, and, if
the caller asks for them, numbers in the notation of JSON. JSON is YAML, so it is read as well.
"""

from __future__ import annotations

import re

import yaml

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


def parse(text: str, *, numbers: bool = True) -> object:
    """The only document in the text, None if it is empty. Raises YamlError."""
    try:
        return yaml.load(text, _TextAndNumberLoader if numbers else _TextLoader)  # noqa: S506 - safe loaders, narrowed
    except yaml.YAMLError as problem:
        raise _error(problem) from None


def parse_all(text: str) -> list[object]:
    """The documents in the text, without empty ones. Raises YamlError."""
    try:
        return [each for each in yaml.load_all(text, _TextAndNumberLoader) if each is not None]
    except yaml.YAMLError as problem:
        raise _error(problem) from None


def _error(problem: yaml.YAMLError) -> YamlError:
    mark = getattr(problem, "problem_mark", None)
    where = f" at line {mark.line + 1}" if mark else ""
    why = getattr(problem, "problem", None) or "unreadable"
    return YamlError(f"not YAML{where} ({why})")
