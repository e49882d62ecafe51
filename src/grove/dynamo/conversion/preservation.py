"""What one version cannot express of an object in the other version, and how it is restored.

A conversion is a pair of functions, forward and back. Neither fails, and both drop what they cannot express.
The dropped fields are preserved beside the converted object. When it is converted back, they are restored,
except where a client has changed the converted object meanwhile: then the change counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Body = dict[str, Any]
Convert = Callable[[Body], Body]

_ABSENT: Any = object()


def restored(source: Body, preserved: Body, forward: Convert, back: Convert) -> Body:
    """The source converted forward, with what is preserved of the other version. Whatever is restored, a
    client of the source's version sees the same as without it."""
    plain = forward(source)
    if not preserved:
        return plain
    seen = back(plain)
    known = forward(back(preserved))
    candidate: Body = merge(known, plain, preserved)
    visible = back(candidate)
    if same(visible, seen) or same(visible, source):
        return candidate
    # The change concerns something that the other version spells in several ways: only what a client of the
    # source's version cannot see is restored.
    found = plain
    for key in preserved.keys() - known.keys():
        candidate = {**found, key: preserved[key]}
        if same(back(candidate), seen):
            found = candidate
    return found


def merge(known: Any, new: Any, preserved: Any) -> Any:
    """The preserved value with the changes from `known` to `new`; objects are merged field by field."""
    if same(new, known):
        return preserved
    if not (isinstance(known, dict) and isinstance(new, dict) and isinstance(preserved, dict)):
        return new
    found = {}
    for key in dict.fromkeys((*preserved, *new)):
        value = merge(known.get(key, _ABSENT), new.get(key, _ABSENT), preserved.get(key, _ABSENT))
        if value is not _ABSENT:
            found[key] = value
    return found


def lost(source: Body, converted_back: Body) -> Body:
    """The fields of the source that are missing or different after a conversion and back."""
    return {key: value for key, value in source.items() if not same(value, converted_back.get(key, _ABSENT))}


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. In Python, `true` and `1` are as well. Values may be deep."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pairs += [(value, right[key]) for key, value in left.items()]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif type(left) is not type(right) or left != right:
            return False
    return True
