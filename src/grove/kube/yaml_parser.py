"""YAML as people mean it: the one function through which every file of theirs is read.

YAML 1.1 reads `no` and `on` as booleans, `1:30` as ninety, `2026-01-01` as a date and `010` as eight. Whoever
writes such a word in a configuration means the word. Here only `true`, `false` and `null` are not text, and,
where the reader wants them, numbers as JSON writes them. JSON itself is read too: it is YAML.
"""

from __future__ import annotations

import re

import yaml

from grove.kube.errors import ConfigError


class YamlError(ConfigError):
    """The text cannot be read; the message says where it goes wrong."""


class _TextLoader(yaml.CSafeLoader):
    """No numbers: a token of digits stays a token."""


class _TextAndNumberLoader(_TextLoader):
    """Numbers in the notation of JSON, which nobody mistakes for a time or a version."""


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
    """The one document in the text, None if it is empty. Raises NotYaml."""
    try:
        return yaml.load(text, _TextAndNumberLoader if numbers else _TextLoader)  # noqa: S506 - safe loaders, narrowed
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        why = getattr(problem, "problem", None) or "unreadable"
        raise YamlError(f"not YAML{where} ({why})") from None
