"""Finds items of a list that the API server refuses because another item has the same key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from grove.api.crds.openapi import Schema
from grove.api.field_errors import FieldError, duplicate

_KEYS = "x-kubernetes-list-map-keys"


def list_key_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """An error for each repeated key of a list whose items have keys, and for each repeated item of a set.
    Paths name items by their key."""
    if isinstance(value, dict):
        known, inner = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            yield from list_key_errors(item, known.get(name, inner), f"{path}.{name}")
    elif isinstance(value, list) and "items" in schema:
        yield from _list_errors(value, schema, path)


def _list_errors(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    keys = [_key(item, schema) for item in value]
    if schema.get("x-kubernetes-list-type") in ("map", "set"):
        repeated = (key for key, count in Counter(keys).items() if count > 1)
        yield from (duplicate(path, "/".join(key)) for key in repeated)
    for index, (item, key) in enumerate(zip(value, keys, strict=True)):
        place = key[0] if _KEYS in schema and key[0] else index
        yield from list_key_errors(item, schema["items"], f"{path}[{place}]")


def _key(item: Any, schema: Schema) -> tuple[str, ...]:
    """The key of an item; of one without keys, its text."""
    if _KEYS not in schema or not isinstance(item, dict):
        return (str(item),)
    fields = schema["items"].get("properties", {})
    return tuple(str(item.get(name, fields.get(name, {}).get("default", ""))) for name in schema[_KEYS])
