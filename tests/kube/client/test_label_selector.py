"""Label selectors match the same labels as on the server."""

from __future__ import annotations

import pytest

from grove.kube.client import label_selector


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "b"}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,c)", {"a": "d"}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a=b,x.io/c in (d,e),!f", {"a": "b", "x.io/c": "e"}, True),
        ("a=b,x.io/c in (d,e),!f", {"a": "b", "x.io/c": "e", "f": ""}, False),
    ],
)
def test_label_selector_matches_labels(text: str, labels: dict[str, str], selected: bool) -> None:
    assert label_selector.parse(text)(labels) is selected


def test_mapping_renders_as_equality_selector() -> None:
    assert label_selector.render({"a": "b", "c": "d"}) == "a=b,c=d"


def test_invalid_label_selector_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"write key=value"):
        label_selector.parse("a in b c")
