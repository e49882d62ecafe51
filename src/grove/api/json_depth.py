"""Checks how deeply JSON text nests, without decoding it.

Decoders recurse, and so does all code that walks over their result. The depth at which they give up, or
overflow the stack, depends on the interpreter and on the caller's own stack. Text from outside is therefore
checked here before it is decoded. No Python code runs per byte, so checking hostile text costs less than
decoding it.
"""

from __future__ import annotations

from itertools import accumulate

MAX_DEPTH = 200
"""Real objects stay below 60, CRDs with their schemas included."""

TOO_DEEP = f"it nests deeper than {MAX_DEPTH} levels"

_NOT_OPENING = bytes(set(range(256)) - set(b"[{"))
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed numbers: 1 and -1


def too_deep(text: bytes) -> bool:
    """Whether arrays and objects nest deeper than `MAX_DEPTH`. For text that is not JSON the result is
    arbitrary.

    Nearly all texts have fewer brackets than that, or fewer that are not empty (managedFields is full of
    `{}`): counting them is a fraction of what decoding costs.
    """
    if len(text.translate(None, _NOT_OPENING)) <= MAX_DEPTH:
        return False
    holding = text.count(b"{") + text.count(b"[") - text.count(b"{}") - text.count(b"[]")
    return holding + 1 > MAX_DEPTH and _depth(text) > MAX_DEPTH


def _depth(text: bytes) -> int:
    """The depth, from the brackets outside of strings."""
    if b"\\" in text:  # once escapes are removed, every remaining quote begins or ends a string
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes in a row are an empty string or lie between two strings: removing them changes nothing else.
    structure = text.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    outside = b"".join(structure.split(b'"')[::2])
    return max(accumulate(memoryview(outside.translate(_STEPS)).cast("b"), initial=0))
