"""How deep JSON text nests, found out before it is decoded.

Decoders recurse, and so does all that walks over what they return. How deep they get before the interpreter's
limit stops them depends on its version and on the frames below, so text that is deeper than any object needs
is refused by its bytes alone. No Python code runs per byte, whatever the text: an attacker's 7 MB take less
time than decoding them would.
"""

from __future__ import annotations

from itertools import accumulate

MAX_DEPTH = 200
"""Objects in use stay below 60, CRDs with their schemas included."""

_OTHER = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed numbers: 1 and -1


def too_deep(text: bytes | memoryview) -> bool:
    """Whether arrays and objects nest deeper than MAX_DEPTH. Of text that is not JSON, any answer will do."""
    text = bytes(text)
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes in a row are an empty string or the seam of two strings: without them, the rest is as before.
    brackets = text.translate(None, _OTHER).replace(b'""', b"")
    outside = b"".join(brackets.split(b'"')[::2])
    steps = memoryview(outside.translate(_STEPS)).cast("b")
    return max(accumulate(steps, initial=0)) > MAX_DEPTH
