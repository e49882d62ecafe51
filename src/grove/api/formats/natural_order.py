"""Sorts names that contain numbers as people expect it. Pure."""

from __future__ import annotations


def natural_order(name: str) -> tuple[tuple[str, int], ...]:
    """Sorts r10 after r9."""
    return tuple((part.rstrip("0123456789"), _number(part)) for part in name.split("-"))


def _number(part: str) -> int:
    digits = part[len(part.rstrip("0123456789")) :]
    return int(digits) if digits else -1
