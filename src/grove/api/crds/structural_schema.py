"""Converts wire types to structural schemas, which the API server requires in a CRD."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args, get_origin

from grove.api.crds import descriptions, openapi, type_properties
from grove.api.crds.openapi import Schema
from grove.api.crds.type_properties import NO_DEFAULT, FieldType, Property
from grove.api.meta import ObjectMeta
from grove.api.wire import Rule, Wire

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def of(struct: type[Wire]) -> Schema:
    """The schema of a wire type."""
    if struct is ObjectMeta:
        return {"type": "object"}  # the API server has its own schema for it
    fields = type_properties.properties(struct)
    schema: Schema = {"description": descriptions.class_description(struct), "type": "object"}
    schema["properties"] = {field.name: _of_property(field) for field in fields}
    if required := sorted(field.name for field in fields if field.required and not _is_header(field)):
        schema["required"] = required
    return _with_rules(schema, getattr(struct, "RULES", ()))


def _is_header(field: Property) -> bool:
    return field.name in ("apiVersion", "kind") and not field.description


def _of_property(field: Property) -> Schema:
    schema = dict(_of_shape(field.shape))
    if field.description:
        schema["description"] = field.description
    if field.default is not NO_DEFAULT:
        schema["default"] = field.default.value if isinstance(field.default, StrEnum) else field.default
    return schema


def _of_shape(shape: FieldType) -> Schema:
    schema = (
        dict(openapi.embedded(shape.kubernetes_schema.definition))
        if shape.kubernetes_schema
        else _of_type(shape.type)
    )
    for facet in shape.facets:
        schema = _with_rules(schema | facet.keywords, facet.rules)
    return schema


def _of_type(kind: Any) -> Schema:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": _of_shape(type_properties.shape(inner[0]))}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_shape(type_properties.shape(inner[1]))}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [each.value for each in kind]}
    if issubclass(kind, Wire):
        return of(kind)
    raise TypeError(f"no schema for {kind}: it is not a wire type")


def _with_rules(schema: Schema, rules: tuple[Rule, ...]) -> Schema:
    if not rules:
        return schema
    entries = [*schema.get("x-kubernetes-validations", ()), *(rule.entry() for rule in rules)]
    return schema | {"x-kubernetes-validations": entries}
