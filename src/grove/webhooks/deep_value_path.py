"""Finds the path of a value that is nested too deeply, for the denial; the review is not decoded."""

from __future__ import annotations

import re

from grove import timing
from grove.api.json_depth import MAX_DEPTH

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*+(:?)|[\[\]{},]', re.DOTALL)


def find(text: bytes) -> str:
    """The beginning of the path to the value that is too deep; empty if it is not found."""
    path: list[str | int] = []
    for token in _TOKEN.finditer(text[: timing.DEEP_VALUE_SCANNED]):
        mark = token[0]
        if token[2]:
            path[-1:] = [token[1].decode("utf-8", "replace")]
        elif mark in b"[{":
            path.append(0 if mark == b"[" else "")
            if len(path) > MAX_DEPTH:
                return _formatted(path)
        elif mark in b"]}":
            path[-1:] = []
        elif mark == b"," and path and isinstance(path[-1], int):
            path[-1] += 1
    return ""


def _formatted(path: list[str | int]) -> str:
    steps = path[2:] if path[:2] == ["request", "object"] else path[1:]
    text = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step[: timing.DEEP_VALUE_STEP_LENGTH]}"
        for step in steps[: timing.DEEP_VALUE_STEPS]
    )
    return " ".join(text.removeprefix(".").split())
