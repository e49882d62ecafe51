"""How deeply JSON text nests, found without decoding it.

Decoders recurse, and so does all code that walks over what they return. The depth at which they give up, or
overflow the stack, depends on the interpreter and on the caller's own stack. Text from outside is therefore
checked here before it is decoded. No Python code runs per byte, so hostile text costs less than decoding it.
"""

from __future__ import annotations

from itertools import accumulate

MAX_DEPTH = 200
"""Objects in use stay below 60, CRDs with their schemas included."""

TOO_DEEP = f"it nests deeper than {MAX_DEPTH} levels"

_NOT_OPENING = bytes(set(range(256)) - set(b"[{"))
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed numbers: 1 and -1


def too_deep(text: bytes) -> bool:
    """Whether arrays and objects nest deeper than `MAX_DEPTH`. For text that is not JSON, any answer will do.

    Nearly all texts have fewer brackets than that, or fewer that hold anything (managedFields is full of
    `{}`): counting them is a fraction of what decoding costs.
    """
    if len(text.translate(None, _NOT_OPENING)) <= MAX_DEPTH:
        return False
    holding = text.count(b"{") + text.count(b"[") - text.count(b"{}") - text.count(b"[]")
    return holding + 1 > MAX_DEPTH and _depth(text) > MAX_DEPTH


def _depth(text: bytes) -> int:
    """Brackets outside of strings, added up."""
    if b"\\" in text:  # without escapes, each quote that is left begins or ends a string
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes in a row are an empty string or the seam of two strings: without them, the rest is as before.
    structure = text.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    outside = b"".join(structure.split(b'"')[::2])
    return max(accumulate(memoryview(outside.translate(_STEPS)).cast("b"), initial=0))
