"""Unites the OpenAPI definitions of several versions of Kubernetes, for `tools.kubernetes_openapi`.

A CRD with the united schema keeps every field of every version, refuses nothing that one of them accepts, and
adds no default to an object that is already stored:

- fields that only some versions have are kept, without their defaults;
- a field is required only if all versions require it;
- any other keyword, such as a default or a list type, is kept only if all versions agree on it.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from grove.api.crds.openapi import Extract, Schema

_IDENTITY = ("$ref", "type")
_PARTS = ("items", "additionalProperties")


def united(extracts: list[Extract]) -> Extract:
    """The extract that covers all versions."""
    versions = tuple(version for extract in extracts for version in extract.versions)
    definitions = reduce(_unite_definitions, (extract.definitions for extract in extracts))
    return Extract(versions, dict(sorted(definitions.items())))


def covers(extract: Extract, other: Extract) -> bool:
    """Whether uniting the extract with the other one would change no definition."""
    return united([extract, other]).definitions == extract.definitions


def _unite_definitions(one: dict[str, Schema], other: dict[str, Schema]) -> dict[str, Schema]:
    both = one.keys() & other.keys()
    return {**one, **other, **{name: _unite(one[name], other[name], name) for name in both}}


def _unite(one: Schema, other: Schema, path: str) -> Schema:
    if any(one.get(word) != other.get(word) for word in _IDENTITY):
        raise ValueError(f"{path}: the versions of Kubernetes differ in its type; decide which one CRDs keep")
    schema: dict[str, Any] = {word: value for word, value in one.items() if other.get(word) == value}
    if required := [name for name in one.get("required", ()) if name in other.get("required", ())]:
        schema["required"] = required
    if "properties" in one or "properties" in other:
        schema["properties"] = _unite_fields(one.get("properties", {}), other.get("properties", {}), path)
    for word in _PARTS:
        if word in one and word in other:
            schema[word] = _unite(one[word], other[word], f"{path}.{word}")
    return schema


def _unite_fields(one: dict[str, Schema], other: dict[str, Schema], path: str) -> dict[str, Schema]:
    both = one.keys() & other.keys()
    single = {name: field for name, field in {**one, **other}.items() if name not in both}
    return {
        **{name: _unite(one[name], other[name], f"{path}.{name}") for name in both},
        **{name: _without_default(field) for name, field in single.items()},
    }


def _without_default(field: Schema) -> Schema:
    return {word: value for word, value in field.items() if word != "default"}
