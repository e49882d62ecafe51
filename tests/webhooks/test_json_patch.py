"""A JSON patch turns one document into the other, and is empty only if they are equal."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.webhooks.json_patch import diff
from tests.webhooks.reviews import apply

keys = st.text(alphabet="ab/~01é", max_size=3)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(keys, json_values, max_size=4)


@given(before=documents, after=documents)
def test_patch_turns_before_into_after(before, after):
    result = copy.deepcopy(before)
    for operation in diff(before, after):
        apply(result, operation)
    assert repr(sort(result)) == repr(sort(after))  # True is not 1, and 1 is not 1.0


def sort(value):
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value


@given(document=documents)
def test_equal_documents_have_empty_patch(document):
    assert list(diff(document, copy.deepcopy(document))) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, [("add", "/a/c")]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, [("replace", "/a/1/b")]),
        ({"a": 1, "b": 2}, {"b": 2}, [("remove", "/a")]),
        ({"a": [1]}, {"a": [1, 2]}, [("replace", "/a")]),
        ({"x": {}}, {"x": {"a/b~c": 1}}, [("add", "/x/a~1b~0c")]),
    ],
)
def test_patch_has_minimal_operations(before, after, operations):
    assert [(each["op"], each["path"]) for each in diff(before, after)] == operations
