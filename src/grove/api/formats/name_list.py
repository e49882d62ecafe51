"""Lists of names in messages to users."""

from __future__ import annotations

from collections.abc import Sequence

from grove import timing


def name_list(names: Sequence[str], most: int = timing.NAMES_SHOWN, separator: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more
