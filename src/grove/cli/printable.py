"""Text of others on a terminal: messages of containers, names in files, labels.

A terminal executes escape sequences: they move the cursor, hide text and set titles. The author of
a message must not control the terminal of its reader.
"""

from __future__ import annotations

import re

_UNESCAPED = re.compile("[\x7f-\x9f]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text on one line, with each control or format character replaced, and spaces for line breaks and
    tabs."""
    if text.isprintable():
        return text
    return "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in "\t\n\r\N{NO-BREAK SPACE}" else REPLACEMENT


def escaped_json(text: str) -> str:
    """JSON with the control characters escaped that JSON allows as they are."""
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
