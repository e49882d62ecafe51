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
_NOT_KEPT = bytes(set(range(256)) - set(b'"[]{}\\/bfnrtu'))  # the characters of escapes, too
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_SAME_BRACKETS = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")  # as signed numbers: 1 and -1
_SHRINKS = 0.9


def too_deep(text: bytes) -> bool:
    """Whether arrays and objects nest deeper than `MAX_DEPTH`. For text that is not JSON the result is
    arbitrary.

    Most objects have fewer brackets than that, or fewer that hold others (managedFields is full of `{}`):
    counting them is a fraction of what decoding costs.
    """
    opening = len(text.translate(None, _NOT_OPENING))
    if opening <= MAX_DEPTH:
        return False
    kept = text.translate(None, _NOT_KEPT)
    holding = opening - kept.count(b"{}") - kept.count(b"[]")
    return holding + 1 > MAX_DEPTH and _depth(kept) > MAX_DEPTH


def _depth(kept: bytes) -> int:
    """The depth, from the brackets outside of strings."""
    if b"\\" in kept:  # once escapes are removed, every remaining quote begins or ends a string
        kept = kept.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes in a row are an empty string or lie between two strings: removing them changes nothing else.
    structure = kept.translate(_SAME_BRACKETS, _NOT_STRUCTURE).replace(b'""', b"")
    outside = b"".join(structure.split(b'"')[::2])
    removed, rest = _without_innermost(outside)
    return removed + max(accumulate(memoryview(rest.translate(_STEPS)).cast("b"), initial=0))


def _without_innermost(brackets: bytes) -> tuple[int, bytes]:
    """Brackets without their innermost levels, and how many levels were removed.

    Removing all innermost pairs makes the depth smaller by one. Real lists are wide and have few levels: this
    takes less time than adding up the depth at each bracket. It stops when little was removed, as each level
    of deep text would take as long as the first one.
    """
    removed = 0
    while brackets:
        outer = brackets.replace(b"[]", b"")
        if len(outer) > _SHRINKS * len(brackets):
            break
        brackets, removed = outer, removed + 1
    return removed, brackets
