"""Timestamps as Kubernetes writes them: UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def render(moment: datetime) -> str:
    """`2026-03-31T12:00:00Z`. The moment must have a time zone, so that the machine's is never assumed."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: use datetime.now(UTC)")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """Parses the timestamp of an object, to the second or finer (Leases and Events have microseconds)."""
    return datetime.fromisoformat(text).astimezone(UTC)
