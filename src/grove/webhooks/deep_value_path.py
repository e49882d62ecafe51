"""Where a review nests too deeply: the one thing that has to be said of an object that is never decoded."""

from __future__ import annotations

import re

from grove.api.json_depth import MAX_DEPTH

_LOOKED_AT = 64 * 1024  # bytes; whoever hides deep values behind more is not told where they are
_SHOWN = 12  # steps of the way
_LONGEST_STEP = 63
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*+(:?)|[\[\]{},]', re.DOTALL)


def place(text: bytes) -> str:
    """The way to the value that is too deep, as far as it is worth showing; empty if it is not found."""
    way: list[str | int] = []
    for token in _TOKEN.finditer(text[:_LOOKED_AT]):
        mark = token[0]
        if token[2]:
            way[-1:] = [token[1].decode("utf-8", "replace")]
        elif mark in b"[{":
            way.append(0 if mark == b"[" else "")
            if len(way) > MAX_DEPTH:
                return _shown(way)
        elif mark in b"]}":
            way[-1:] = []
        elif mark == b"," and way and isinstance(way[-1], int):
            way[-1] += 1
    return ""


def _shown(way: list[str | int]) -> str:
    steps = way[2:] if way[:2] == ["request", "object"] else way[1:]
    text = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step[:_LONGEST_STEP]}" for step in steps[:_SHOWN]
    )
    return " ".join(text.removeprefix(".").split())
