"""The nesting depth of JSON text: brackets in strings do not count, and escapes are respected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api import json_depth
from grove.api.json_depth import MAX_DEPTH, too_deep
from tests.fuzzing import budget


def nested(depth: int, inner: str = "1", opening: str = "[", closing: str = "]") -> bytes:
    return (opening * depth + inner + closing * depth).encode()


PADDING = "[" * (MAX_DEPTH + 1)  # in a string: too many brackets for the shortcut, none of which nests


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", False),
        (b"1", False),
        (nested(MAX_DEPTH), False),
        (nested(MAX_DEPTH + 1), True),
        (nested(MAX_DEPTH + 1, opening='{"a":', closing="}"), True),
        (nested(MAX_DEPTH, opening='{"a":', closing="}"), False),
        (nested(MAX_DEPTH // 2, opening='[{"a":', closing="}]"), False),
        (nested(MAX_DEPTH // 2, inner="[]", opening='[{"a":', closing="}]"), True),
        (nested(1_500), True),
        (nested(1_000_000), True),
        (b"[" * (MAX_DEPTH + 1), True),
        (b"[" + b",".join([b"[]"] * 1_000) + b"]", False),
        (b"[" + b"[[]]," * 1_000 + nested(MAX_DEPTH - 1) + b"]", False),
        (b"[" + b"[[]]," * 1_000 + nested(MAX_DEPTH) + b"]", True),
        (f'["{PADDING}"]'.encode(), False),
        (f'["\\"{PADDING}"]'.encode(), False),
        (f'["\\\\", {PADDING}'.encode(), True),
        (f'["\\\\\\"{PADDING}"]'.encode(), False),
        (f'["\\\\\\\\", {PADDING}'.encode(), True),
        (f'["a""{PADDING}"]'.encode(), False),
        (f'["","{PADDING}",""]'.encode(), False),
        (f'{{"{PADDING}": "]]]]"}}'.encode(), False),
        (nested(MAX_DEPTH, inner=f'"{"]" * 9}",[]'), True),
        (b"]" * 500 + b"[" * 300, False),
        (f'"{PADDING}'.encode(), False),
        (b"\xff\x00" + PADDING.encode(), True),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_depth_of_example_texts(text: bytes, expected: bool) -> None:
    assert too_deep(text) is expected


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


words = st.text(alphabet='[]{}"\\,:a\u00e9\n', max_size=8)
values = st.recursive(
    st.none() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=20,
)


@budget(200)
@given(values, st.integers(0, 6), st.booleans())
def test_depth_of_random_values_is_exact(value: Any, limit: int, readable: bool) -> None:
    text = json.dumps(value, indent=1 if readable else None, ensure_ascii=readable).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "MAX_DEPTH", limit)
        assert too_deep(text) is (depth_of(value) > limit)
