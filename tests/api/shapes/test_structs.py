"""Values compared with wire types: every difference is an error with its path."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from msgspec import Raw, field

from grove.api.shapes.structs import StructReader
from grove.api.wire import Wire


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Item(Wire, frozen=True):
    name: str
    size: float = 0.0


class Thing(Wire, frozen=True):
    item_count: int = 0
    enabled: bool = False
    colour: Colour = Colour.RED
    items: tuple[Item, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    template: Raw | None = None


WHOLE = {
    "itemCount": 1,
    "enabled": True,
    "colour": "blue",
    "items": [{"name": "a", "size": 1}, {"name": "b", "size": 1.5}],
    "labels": {"a": "b"},
    "settings": {"a": [1, {}]},
    "template": {"any": 1},
}


def errors(value: object) -> list[str]:
    return list(map(str, StructReader().errors(value, Thing)))


@pytest.mark.parametrize("value", [{}, WHOLE, dict.fromkeys(WHOLE)])
def test_value_of_right_type_has_no_errors(value):
    assert errors(value) == []


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, "object: Required value"),
        ([], 'object: Invalid value: "(list)": must be an object'),
        ({"itemCount": True}, "itemCount: Invalid value: true: must be a whole number"),
        ({"itemCount": 1.0}, "itemCount: Invalid value: 1.0: must be a whole number"),
        ({"enabled": 1}, "enabled: Invalid value: 1: must be true or false"),
        ({"colour": "green"}, 'colour: Unsupported value: "green": supported values: "red", "blue"'),
        ({"colour": 1}, "colour: Invalid value: 1: must be text"),
        ({"items": {}}, 'items: Invalid value: "(object)": must be a list'),
        ({"items": [None]}, "items[0]: Required value"),
        ({"items": [{}]}, "items[0].name: Required value"),
        ({"items": [{"name": "a", "size": "b"}]}, 'items[0].size: Invalid value: "b": must be a number'),
        ({"items": [{"name": "\ud800"}]}, 'items[0].name: Invalid value: "(text)": must be valid Unicode'),
        ({"labels": {"a.b/c": 1}}, "labels[a.b/c]: Invalid value: 1: must be text"),
        ({"labels": {1: "a"}}, 'labels: Invalid value: "1": keys must be text'),
        ({"settings": 1}, "settings: Invalid value: 1: must be an object"),
        ({"template": "a"}, 'template: Invalid value: "a": must be an object'),
        ({"itemCuont": 1}, "itemCuont: Forbidden: unknown field; did you mean itemCount?"),
        ({1: 2}, "1: Forbidden: unknown field"),
    ],
)
def test_difference_is_an_error_with_its_path(value, error):
    assert errors(value) == [error]
