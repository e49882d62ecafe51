"""Hypothesis strategies for any wire type, derived from its declaration."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import Raw

from grove.api.crds import type_properties
from grove.api.wire import Wire

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def raw_objects(draw: st.DrawFn) -> bytes:
    """JSON objects as people write them: any fields, any order, any white space, escapes or none."""
    value = draw(st.dictionaries(TEXT, JSON_VALUES, max_size=5))
    spaces = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " :  ")]))
    return json.dumps(value, separators=spaces, ensure_ascii=draw(st.booleans())).encode()


@cache
def values(struct: type[Wire]) -> st.SearchStrategy[Any]:
    """Objects of a wire type; fields with a default are sometimes omitted."""
    wanted, optional = {}, {}
    for field, property_ in zip(
        msgspec.structs.fields(struct), type_properties.properties(struct), strict=True
    ):
        (wanted if field.required else optional)[field.name] = _of(property_.shape.type)
    return st.fixed_dictionaries(wanted, optional=optional).map(lambda fields: struct(**fields))


def _of(kind: Any) -> st.SearchStrategy[Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Raw:
        return raw_objects().map(Raw)
    if origin is tuple:
        return st.lists(_of(type_properties.shape(inner[0]).type), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXT, JSON_VALUES if inner[1] is object else TEXT, max_size=2)
    if issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    if issubclass(kind, Wire):
        return values(kind)
    return {
        str: TEXT,
        bool: st.booleans(),
        int: st.integers(-(2**31), 2**31 - 1),
        float: st.floats(allow_nan=False, allow_infinity=False),
    }[kind]
