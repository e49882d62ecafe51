"""Points in time as Kubernetes writes them: UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def render(moment: datetime) -> str:
    """`2026-03-31T12:00:00Z`. The moment must know its time zone, or this machine's would decide."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: say datetime.now(UTC)")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """What an object says, to the second or finer (leases and events have microseconds)."""
    return datetime.fromisoformat(text).astimezone(UTC)
