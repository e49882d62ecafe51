"""Kubernetes quantities: `500m`, `1.5Gi`, `2e3`, 8. One amount has many spellings."""

from __future__ import annotations

import re
from fractions import Fraction

_WRITTEN = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]))?")
_DECIMAL = {unit: Fraction(1000) ** power for power, unit in enumerate(("n", "u", "m", "", "k"), start=-3)}
_DECIMAL |= {unit: Fraction(1000) ** power for power, unit in enumerate("MGTPE", start=2)}
_BINARY = {f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_UNITS = _DECIMAL | _BINARY
_MOST_DIGITS = 64  # exact arithmetic on more, or with a large exponent, would take all memory there is
_LARGEST_EXPONENT = 40


def parse(written: str | int | float) -> Fraction:
    """The amount, exactly. Raises ValueError for what is no quantity."""
    found = _WRITTEN.fullmatch(str(written))
    if found is None:
        raise ValueError(f"{written!r} is no quantity: write a number with a unit such as m, k, M, Ki or Mi")
    number, exponent, unit = found.groups()
    if len(number) > _MOST_DIGITS or abs(int((exponent or "0")[:_MOST_DIGITS])) > _LARGEST_EXPONENT:
        raise ValueError(f"{str(written)[:40]!r} is out of range: Kubernetes counts up to 2^63")
    return Fraction(number) * Fraction(10) ** int(exponent or 0) * _UNITS[unit or ""]
