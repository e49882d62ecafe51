"""Checks a value against an OpenAPI schema of Kubernetes: wrong types and unknown fields are errors."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from grove.api.crds import openapi
from grove.api.crds.openapi import Schema
from grove.api.formats import quantities
from grove.rules.model import FieldError, forbidden, invalid, required

QUANTITY = openapi.SPECIAL["io.k8s.apimachinery.pkg.api.resource.Quantity"]
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
}


def type_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Errors for values of the wrong type and for unknown fields. Null counts as absent."""
    if value is None:
        return
    if schema.get("x-kubernetes-int-or-string"):
        yield from _scalar(value, schema, path)
        return
    kind, called = _TYPES.get(schema.get("type", ""), (object, "anything"))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        yield type_error(path, value, called)
    elif isinstance(value, dict):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from type_errors(item, schema.get("items", {}), f"{path}[{index}]")


def unknown_field(path: str, name: str, known: tuple[str, ...]) -> FieldError:
    """The error for an unknown field, with the most similar known one."""
    near = get_close_matches(name, known, 1)
    return forbidden(f"{path}.{name}", f"unknown field; did you mean {near[0]}?" if near else "unknown field")


def type_error(path: str, value: Any, wanted: str) -> FieldError:
    """The error for a value of the wrong type; objects and lists are not quoted."""
    shown = "(object)" if isinstance(value, dict) else "(list)" if isinstance(value, list) else value
    return invalid(path, shown, f"must be {wanted}")


def _scalar(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str | int) or isinstance(value, bool):
        yield type_error(path, value, "a number or text")
    elif "pattern" in schema:
        try:
            quantities.parse(value)
        except ValueError as problem:
            yield invalid(path, value, str(problem))


def _object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    known = schema.get("properties", {})
    inner = schema.get("additionalProperties")
    free = schema.get("x-kubernetes-preserve-unknown-fields") or not (known or inner)
    for name, item in value.items():
        if name in known:
            yield from type_errors(item, known[name], f"{path}.{name}")
        elif inner:
            yield from type_errors(item, inner, f"{path}[{name}]")
        elif not free:
            yield unknown_field(path, name, tuple(known))
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield required(f"{path}.{name}")
