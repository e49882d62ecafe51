"""The union of definitions of several versions of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from tools.openapi_union import covers, united

from grove.api.crds.openapi import Extract


def extract(version: str, **fields: Any) -> Extract:
    """An extract of one definition with these fields."""
    return Extract((version,), {"Pod": {"type": "object", "properties": fields}})


def fields_of(*extracts: Extract) -> Any:
    return united(list(extracts)).definitions["Pod"]["properties"]


TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}


def test_union_names_all_versions():
    assert united([extract("v1.37.1"), extract("v1.36.3")]).versions == ("v1.37.1", "v1.36.3")


def test_added_and_removed_fields_are_kept():
    assert fields_of(extract("new", added=TEXT), extract("old", removed=TEXT)) == {
        "added": TEXT,
        "removed": TEXT,
    }


def test_added_and_removed_definitions_are_kept():
    one, other = Extract(("new",), {"Added": TEXT}), Extract(("old",), {"Removed": TEXT})
    assert united([one, other]).definitions == {"Added": TEXT, "Removed": TEXT}


def test_fields_of_nested_objects_are_united():
    one, other = ({"type": "object", "properties": {name: TEXT}} for name in "ab")
    both = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    for word, kind in (("items", "array"), ("additionalProperties", "object")):
        found = fields_of(
            extract("new", f={"type": kind, word: one}), extract("old", f={"type": kind, word: other})
        )
        assert found == {"f": {"type": kind, word: both}}


def test_field_is_required_if_all_versions_require_it():
    definitions = [
        {"Pod": {"type": "object", "required": required}} for required in (["a", "b"], ["b", "c"], ["b"])
    ]
    found = united([Extract((str(n),), each) for n, each in enumerate(definitions)])
    assert found.definitions["Pod"]["required"] == ["b"]


def test_nothing_is_required_if_one_version_requires_nothing():
    one, other = {"type": "object", "required": ["a"]}, {"type": "object"}
    for pair in ((one, other), (other, one)):
        found = united([Extract(("v",), {"Pod": each}) for each in pair])
        assert found.definitions == {"Pod": {"type": "object"}}


@pytest.mark.parametrize("other", [{}, {"f": TEXT}, {"f": {**TEXT, "default": "b"}}])
def test_default_that_versions_differ_in_is_dropped(other):
    """Otherwise the upgrade of a CRD would change stored objects and the hashes of their templates."""
    defaulted = extract("new", f={**TEXT, "default": "a"})
    assert fields_of(defaulted, extract("old", **other)) == {"f": TEXT}
    assert fields_of(extract("old", **other), defaulted) == {"f": TEXT}


def test_default_of_all_versions_is_kept():
    same = {**TEXT, "default": "a"}
    assert fields_of(extract("new", f=same), extract("old", f=same)) == {"f": same}


def test_list_type_that_one_version_lacks_is_dropped():
    """A list of type `set` or `map` refuses duplicates, which stored objects may have."""
    assert fields_of(extract("new", f={**LIST, "x-kubernetes-list-type": "set"}), extract("old", f=LIST)) == {
        "f": LIST
    }


@pytest.mark.parametrize("other", [{"type": "integer"}, {"$ref": "Text"}])
def test_differing_type_raises_with_path(other):
    with pytest.raises(ValueError, match=r"Pod\.f: the versions of Kubernetes differ in its type"):
        united([extract("new", f=TEXT), extract("old", f=other)])


def test_union_covers_its_versions_only():
    new, old = extract("new", added=TEXT, kept=TEXT), extract("old", removed=TEXT, kept=TEXT)
    both = united([new, old])
    assert covers(both, new)
    assert covers(both, old)
    assert not covers(new, old)
    assert not covers(both, extract("next", kept=TEXT, more=TEXT))
