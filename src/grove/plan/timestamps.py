"""Converts times and durations between the API's text format and seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from grove.api.formats import durations, timestamps


def rfc3339(now: float) -> str:
    """Formats seconds since 1970 as RFC 3339."""
    return _rendered(int(now))


@lru_cache(maxsize=4)
def _rendered(second: int) -> str:
    """Cached: hundreds of plans in a row format the same second, and formatting is slow."""
    return timestamps.render(datetime.fromtimestamp(second, UTC))


@lru_cache(maxsize=256)
def seconds(duration: str) -> float:
    """Parses a duration of the API into seconds."""
    return durations.parse(duration).total_seconds()


def timestamp(text: str | None) -> float:
    """Parses a time of the API into seconds since 1970; 0 for none."""
    return timestamps.parse(text).timestamp() if text else 0.0


def earliest(*times: float | None) -> float | None:
    """The earliest of the times; None if all are None."""
    return min((time for time in times if time is not None), default=None)
