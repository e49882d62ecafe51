"""Generates docs/api-reference.md from the wire types: one section per kind, one table per type."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, get_args, get_origin

from grove.api.configuration.default_scheduler import DefaultSchedulerConfig
from grove.api.configuration.types import OperatorConfiguration
from grove.api.crds import descriptions, type_properties
from grove.api.crds.type_properties import NO_DEFAULT, FieldType, Property
from grove.api.meta import ObjectMeta
from grove.api.types.registry import KINDS
from grove.api.wire import Wire

HEAD = """\
# API reference

Generated from the types in `src/grove/api` by `make fix`; do not edit.

Fields marked with * are required. *Checked* lists the rules that the API server itself enforces; the
operator's admission webhook enforces more.
"""


def page() -> str:
    """The whole page."""
    shown: set[type] = set()
    kinds = [_kind_section(kind, shown) for kind in KINDS]
    return "\n".join([HEAD, *kinds, _configuration_section(shown), _default_scheduler_section(shown)])


def _kind_section(kind: Any, shown: set[type]) -> str:
    about = kind.KIND
    scope = "namespaced" if about.namespaced else "cluster-wide"
    facts = f"`{about.api_version}`, {scope}, short name `{about.short_names[0]}`"
    if about.scale:
        facts += f", scalable (`kubectl scale {about.short_names[0]}`)"
    return f"## {about.name}\n\n{descriptions.class_description(kind)}\n\n{facts}.\n\n" + _tables(kind, shown)


def _configuration_section(shown: set[type]) -> str:
    about = descriptions.class_description(OperatorConfiguration)
    return f"## OperatorConfiguration\n\n{about}\n\n" + _tables(OperatorConfiguration, shown)


def _default_scheduler_section(shown: set[type]) -> str:
    """The configuration refers to it only as an object: its fields depend on the profile."""
    about = descriptions.class_description(DefaultSchedulerConfig)
    name = DefaultSchedulerConfig.__name__
    return f"### {name}\n\n{about}\n\n" + _tables(DefaultSchedulerConfig, shown)


def _tables(root: type[Wire], shown: set[type]) -> str:
    """The table of the type, then those of its field types that no earlier section has shown."""
    tables = [_table(root)]
    for struct in _consists_of(root):
        if struct not in shown:
            shown.add(struct)
            tables.append(
                f"### {struct.__name__}\n\n{descriptions.class_description(struct)}\n\n{_table(struct)}"
            )
    return "\n".join(tables)


def _consists_of(struct: type[Wire]) -> Iterator[type[Wire]]:
    """The types of its fields, depth first, in the order of the fields."""
    for field in type_properties.properties(struct):
        inner = _innermost(field.shape.type)
        if isinstance(inner, type) and issubclass(inner, Wire) and inner is not ObjectMeta:
            yield inner
            yield from _consists_of(inner)


def _table(struct: type[Wire]) -> str:
    rows = [
        _row(field)
        for field in type_properties.properties(struct)
        if field.name not in ("apiVersion", "kind", "metadata")
    ]
    checks = [rule.message for rule in getattr(struct, "RULES", ())]
    rules = "".join(f"\nChecked: {message}.\n" for message in checks)
    return "| field | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + f"\n{rules}"


def _row(field: Property) -> str:
    name = f"`{field.name}`" + ("\\*" if field.required else "")
    default = "" if field.default is NO_DEFAULT else f"`{_value(field.default)}`"
    meaning = " ".join((field.description, *_checks(field.shape)))
    return f"| {name} | {_type(field.shape)} | {default} | {meaning} |".replace("  ", " ")


def _checks(shape: FieldType) -> Iterator[str]:
    for facet in shape.facets:
        for word, value in facet.keywords.items():
            if word in _LIMITS:
                yield f"{_LIMITS[word]} `{_escaped(str(value))}`."
        for rule in facet.rules:
            yield f"Checked: {rule.message}."


_LIMITS = {"maxItems": "At most", "minItems": "At least", "pattern": "Pattern", "maxLength": "Longest"}


def _type(shape: FieldType) -> str:
    if shape.kubernetes_schema:
        return shape.kubernetes_schema.definition.rpartition(".")[2]
    if get_origin(shape.type) is tuple:
        return f"list of {_type(type_properties.shape(get_args(shape.type)[0]))}"
    if get_origin(shape.type) is dict:
        return "map"
    if issubclass(shape.type, StrEnum):
        return " or ".join(f"`{each.value}`" for each in shape.type if each.value)
    if issubclass(shape.type, Wire):
        return f"[{shape.type.__name__}](#{shape.type.__name__.lower()})"
    return shape.display_name or _PLAIN[shape.type]


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", object: "any"}


def _innermost(kind: Any) -> Any:
    while get_origin(kind) in (tuple, dict):
        kind = type_properties.shape(get_args(kind)[-1 if get_origin(kind) is dict else 0]).type
    return kind


def _value(default: object) -> object:
    if isinstance(default, StrEnum):
        return default.value
    return str(default).lower() if isinstance(default, bool) else default


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
