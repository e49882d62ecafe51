"""Ages as text."""

from __future__ import annotations


def age_text(seconds: int | None) -> str:
    """An age in one unit: `42s`, `5m`, `3h`, `12d`."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
