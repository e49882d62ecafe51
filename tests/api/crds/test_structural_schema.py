"""Structural schemas generated from wire types."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec
import pytest

from grove.api.crds import crd, openapi, structural_schema, type_properties
from grove.api.types.raw_templates import PodSpec
from grove.api.types.registry import KINDS
from grove.api.wire import Int32, Rule, Wire, always, checked, defaulted, facet, keyed, text


class Colour(StrEnum):
    RED = "red"


class Inner(Wire, frozen=True):
    """Inside."""

    RULES: ClassVar = (Rule("self.size > 0", "too small", "FieldValueInvalid", ".size"),)

    size: Int32
    """How much."""


class Outer(Wire, frozen=True, kw_only=True):
    """Outside.

    Not for readers of the API.
    """

    needed: str
    """Must be
    there."""
    written: str = always("")
    filled: Int32 = defaulted(3)
    colour: Colour = defaulted(Colour.RED)
    short: Annotated[str, text("^a", shortest=1, longest=2)] = ""
    inner: Annotated[Inner, checked(Rule("true", "more"))] | None = None
    many: Annotated[tuple[Inner, ...], keyed("size"), facet(max_items=2)] = ()
    named: dict[str, str] = msgspec.field(default_factory=dict)
    pod: PodSpec


class Wrong(Wire, frozen=True):
    """Not for the wire."""

    field: complex = 0j


def properties() -> dict:
    return structural_schema.of(Outer)["properties"]


def test_descriptions_come_from_docstrings():
    assert structural_schema.of(Outer)["description"] == "Outside."
    assert properties()["needed"] == {"type": "string", "description": "Must be there."}


def test_fields_without_server_default_are_required():
    assert structural_schema.of(Outer)["required"] == ["needed", "pod", "written"]


def test_only_server_defaults_are_in_the_schema():
    assert properties()["filled"] == {"type": "integer", "format": "int32", "default": 3}
    assert properties()["colour"] == {"type": "string", "enum": ["red"], "default": "red"}
    assert "default" not in properties()["short"]


def test_facets_add_schema_keywords():
    assert properties()["short"] == {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 2}
    many = properties()["many"]
    assert (many["x-kubernetes-list-type"], many["x-kubernetes-list-map-keys"]) == ("map", ["size"])
    assert many["maxItems"] == 2


def test_rules_of_type_precede_rules_of_use():
    first, second = properties()["inner"]["x-kubernetes-validations"]
    assert first == {
        "rule": "self.size > 0",
        "message": "too small",
        "reason": "FieldValueInvalid",
        "fieldPath": ".size",
    }
    assert second == {"rule": "true", "message": "more"}
    (alone,) = properties()["many"]["items"]["x-kubernetes-validations"]
    assert alone == first, "a rule of one use must not reach the type's other uses"


def test_unsupported_type_raises():
    with pytest.raises(TypeError, match="no schema for <class 'complex'>"):
        structural_schema.of(Wrong)


def test_always_field_is_encoded_and_optional_on_decode():
    pod = msgspec.Raw(b"{}")
    assert msgspec.json.encode(Outer(needed="x", pod=pod)) == (
        b'{"needed":"x","written":"","filled":3,"colour":"red","pod":{}}'
    )
    assert msgspec.json.decode(b'{"needed":"x","pod":{}}', type=Outer) == Outer(needed="x", pod=pod)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_of_our_kinds_has_a_description(kind):
    undescribed = [
        path for path, field in walk(kind, "") if not field.description and field.name not in HEADERS
    ]
    assert undescribed == []


HEADERS = ("apiVersion", "kind", "metadata")


def walk(struct, path):
    for field in type_properties.properties(struct):
        here = f"{path}.{field.name}"
        yield here, field
        inner = field.shape.type
        for each in (inner, *getattr(inner, "__args__", ())):
            each = type_properties.shape(each).type
            if isinstance(each, type) and issubclass(each, Wire) and field.name != "metadata":
                yield from walk(each, here)


def structural_nodes(node):
    if isinstance(node, dict):
        yield node
        for word in ("properties",):
            for each in node.get(word, {}).values():
                yield from structural_nodes(each)
        for word in ("items", "additionalProperties"):
            yield from structural_nodes(node.get(word))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_schemas_use_only_crd_keywords(kind):
    allowed = {
        "type", "format", "description", "properties", "required", "items", "additionalProperties", "default",
        "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "anyOf",
        "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
    }  # fmt: skip
    for node in structural_nodes(structural_schema.of(kind)):
        assert node.keys() <= allowed
        assert "type" in node or node.get("x-kubernetes-int-or-string")


def test_crd_generation_is_deterministic():
    assert crd.all_definitions() == crd.all_definitions()


def test_generation_leaves_embedded_schemas_unchanged():
    before = msgspec.json.encode(openapi.embedded("io.k8s.api.core.v1.PodSpec"))
    for kind in KINDS:
        structural_schema.of(kind)
    assert msgspec.json.encode(openapi.embedded("io.k8s.api.core.v1.PodSpec")) == before
