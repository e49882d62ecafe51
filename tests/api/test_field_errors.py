"""The text of field errors."""

from __future__ import annotations

import pytest

from grove.api.field_errors import duplicate, forbidden, invalid, not_found, required, unsupported


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (invalid("a.b", "x", "no"), 'a.b: Invalid value: "x": no'),
        (invalid("a.b", ["x", 1], "no"), 'a.b: Invalid value: ["x",1]: no'),
        (invalid("a.b", object(), "no"), "a.b: Invalid value: (object): no"),
        (
            invalid("a" * 300, "x" * 300, "n" * 2000),
            f'{"a" * 200}...: Invalid value: "{"x" * 199}...: {"n" * 1000}...',
        ),
        (required("a.b"), "a.b: Required value"),
        (required("a.b", "say so"), "a.b: Required value: say so"),
        (duplicate("a.b", "x"), 'a.b: Duplicate value: "x"'),
        (forbidden("a.b", "no"), "a.b: Forbidden: no"),
        (not_found("a.b", "x"), 'a.b: Not found: "x"'),
        (unsupported("a", "x", ("y", "z")), 'a: Unsupported value: "x": supported values: "y", "z"'),
    ],
)
def test_field_error_text_matches_kubernetes(error, text):
    assert str(error) == text
