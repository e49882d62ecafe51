"""The differences between two CRDs that make the API server treat an object differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Schema = dict[str, Any]
NESTED = ("properties", "items", "additionalProperties")


class Difference(NamedTuple):
    crd: str
    path: str
    what: str

    def is_covered_by(self, row: Difference) -> bool:
        return all(_matches(pattern, value) for pattern, value in zip(row, self, strict=True))


def between(ours: Schema, upstream: Schema) -> Iterator[Difference]:
    """The differences of our CRD from upstream's."""
    plural = ours["spec"]["names"]["plural"]
    (here,), (there,) = ours["spec"]["versions"], upstream["spec"]["versions"]
    nodes, others = (_nodes(version["schema"]["openAPIV3Schema"], "") for version in (here, there))
    for path in sorted(nodes.keys() | others.keys()):
        if path not in others or path not in nodes:
            if _parent(path) in nodes and _parent(path) in others:
                yield Difference(plural, path, "only here" if path in nodes else "only upstream")
            continue
        yield from (Difference(plural, path, word) for word in _unequal(nodes[path], others[path]))
    for word in _unequal(_settings(here), _settings(there)):
        yield Difference(plural, "version", word)
    for word in _unequal(ours["spec"]["names"], upstream["spec"]["names"]):
        yield Difference(plural, "names", word)
    for word in _unequal(_settings(ours["spec"]), _settings(upstream["spec"])):
        yield Difference(plural, "spec", word)


def listed(page: Path) -> list[Difference]:
    """The rows of the page's table of schema differences."""
    _, _, section = page.read_text().partition("## Schemas")
    rows = [line.strip("| \n").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [Difference(*row[:3]) for row in rows[1:]]


def _nodes(schema: Schema, path: str) -> dict[str, Schema]:
    """Each node of the schema by its path, with its own keywords."""
    properties = schema.get("properties", {})
    node = {word: value for word, value in schema.items() if word not in (*NESTED, "description")}
    node["required"] = sorted(
        name for name in schema.get("required", ()) if "default" not in properties.get(name, {})
    )
    node["x-kubernetes-validations"] = sorted(
        schema.get("x-kubernetes-validations", ()), key=lambda rule: rule["rule"]
    )
    nodes = {path or "(root)": node}
    for name, field in properties.items():
        nodes |= _nodes(field, f"{path}.{name}")
    for word, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(word), dict):
            nodes |= _nodes(schema[word], path + mark)
    return nodes


def _parent(path: str) -> str:
    return re.sub(r"(\.[^.\[{]+|\[\]|\{\})$", "", path) or "(root)"


def _settings(level: Schema) -> Schema:
    return {word: value for word, value in level.items() if word not in ("schema", "versions", "names")}


def _unequal(ours: Schema, upstream: Schema) -> list[str]:
    return sorted(word for word in ours.keys() | upstream.keys() if ours.get(word) != upstream.get(word))


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), value) is not None
