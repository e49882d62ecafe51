"""Compares a value with an OpenAPI schema of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.crds.openapi import Schema
from grove.api.field_errors import FieldError, invalid, required
from grove.api.formats import quantities
from grove.api.shapes.type_errors import is_of_type, type_error, type_name, unicode_errors, unknown_field

_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": float, "boolean": bool}


def schema_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Errors for values of the wrong type, unknown fields and missing ones. Null counts as absent."""
    if value is None:
        return
    if schema.get("x-kubernetes-int-or-string"):
        yield from _number_or_text_errors(value, schema, path)
        return
    kind = _TYPES.get(schema.get("type", ""))
    if kind is not None and not is_of_type(value, kind):
        yield type_error(path, value, type_name(kind))
    elif isinstance(value, dict):
        yield from _object_errors(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from schema_errors(item, schema.get("items", {}), f"{path}[{index}]")
    else:
        yield from unicode_errors(path, value)


def _number_or_text_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if not is_of_type(value, int) and not is_of_type(value, str):
        yield type_error(path, value, "a number or text")
    elif "pattern" in schema:
        try:
            quantities.parse(value)
        except ValueError as problem:
            yield invalid(path, value, str(problem))


def _object_errors(value: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    known = schema.get("properties", {})
    inner = schema.get("additionalProperties")
    free = schema.get("x-kubernetes-preserve-unknown-fields") or not (known or inner)
    for name, item in value.items():
        if name in known:
            yield from schema_errors(item, known[name], f"{path}.{name}")
        elif inner:
            yield from schema_errors(item, inner, f"{path}[{name}]")
        elif not free:
            yield unknown_field(f"{path}.{name}", str(name), known)
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield required(f"{path}.{name}")
