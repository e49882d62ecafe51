"""Time as the API writes it, and as numbers to reckon with."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(now: float) -> str:
    """Seconds since 1970 as the API writes them."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str | None) -> float:
    """A time of the API in seconds since 1970; 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
