"""Lists of names in messages name the first ones, and count the others."""

from __future__ import annotations

import pytest

from grove.api.formats.name_list import name_list


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 2, ""),
        (["a"], 2, "a"),
        (["a", "b"], 2, "a, b"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        (["a", "b", "c"], 1, "a and 2 more"),
    ],
)
def test_name_list_counts_names_above_limit(names, most, text):
    assert name_list(names, most) == text


def test_name_list_joins_with_given_separator():
    assert name_list(["a", "b", "c"], 2, separator="; ") == "a; b and 1 more"
