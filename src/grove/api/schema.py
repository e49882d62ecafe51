"""Wire types as structural schemas, the form in which the API server wants them in a CRD."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args, get_origin

from grove.api import model, openapi, words
from grove.api.meta import ObjectMeta
from grove.api.model import NOTHING, Property, Shape
from grove.api.openapi import Schema
from grove.api.wire import Rule, Wire

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def of(struct: type[Wire]) -> Schema:
    """The schema of a wire type."""
    if struct is ObjectMeta:
        return {"type": "object"}  # the API server has its own schema for it
    fields = model.properties(struct)
    schema: Schema = {"description": words.about(struct), "type": "object"}
    schema["properties"] = {field.name: _of_property(field) for field in fields}
    if required := sorted(field.name for field in fields if field.required and not _is_header(field)):
        schema["required"] = required
    return _with_rules(schema, getattr(struct, "RULES", ()))


def _is_header(field: Property) -> bool:
    return field.name in ("apiVersion", "kind") and not field.words


def _of_property(field: Property) -> Schema:
    schema = dict(_of_shape(field.shape))
    if field.words:
        schema["description"] = field.words
    if field.default is not NOTHING:
        schema["default"] = field.default.value if isinstance(field.default, StrEnum) else field.default
    return schema


def _of_shape(shape: Shape) -> Schema:
    schema = dict(openapi.embedded(shape.foreign.definition)) if shape.foreign else _of_type(shape.type)
    for facet in shape.facets:
        schema = _with_rules(schema | facet.keywords, facet.rules)
    return schema


def _of_type(kind: Any) -> Schema:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": _of_shape(model.shape(inner[0]))}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_shape(model.shape(inner[1]))}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [each.value for each in kind]}
    if issubclass(kind, Wire):
        return of(kind)
    raise TypeError(f"no schema for {kind}: it is no wire type")


def _with_rules(schema: Schema, rules: tuple[Rule, ...]) -> Schema:
    if not rules:
        return schema
    entries = [*schema.get("x-kubernetes-validations", ()), *(rule.entry() for rule in rules)]
    return schema | {"x-kubernetes-validations": entries}
