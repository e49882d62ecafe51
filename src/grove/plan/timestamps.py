"""Time as the API writes it, and as numbers to reckon with."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from grove.api.formats import durations, timestamps


def rfc3339(now: float) -> str:
    """Seconds since 1970 as the API writes them."""
    return _rendered(int(now))


@lru_cache(maxsize=4)
def _rendered(second: int) -> str:
    """The same for hundreds of plans in a row, and dear: kept."""
    return timestamps.render(datetime.fromtimestamp(second, UTC))


@lru_cache(maxsize=256)
def seconds(duration: str) -> float:
    """A duration of the API in seconds."""
    return durations.parse(duration).total_seconds()


def timestamp(text: str | None) -> float:
    """A time of the API in seconds since 1970; 0 for none."""
    return timestamps.parse(text).timestamp() if text else 0.0
