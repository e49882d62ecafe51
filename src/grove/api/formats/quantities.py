"""Parses Kubernetes quantities: `500m`, `1.5Gi`, `2e3`, 8. One amount can be written in many ways."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_LONGEST = 64
"""The limit of the length and of the exponent. Kubernetes counts to 2^63; 10^999999999 takes minutes to
compute."""
_WRITTEN = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]))?")
_DECIMAL = {unit: Fraction(1000) ** power for power, unit in enumerate(("n", "u", "m", "", "k"), start=-3)}
_DECIMAL |= {unit: Fraction(1000) ** power for power, unit in enumerate("MGTPE", start=2)}
_BINARY = {f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_UNITS = _DECIMAL | _BINARY


def parse(written: str | int | float) -> Fraction:
    """The exact amount. Raises ValueError with a message for users."""
    text = str(written)
    amount = _amount(text) if len(text) <= _LONGEST else None
    if amount is None:
        shown = repr(written)[:_LONGEST]
        raise ValueError(f"{shown} is not a quantity: write a number with a unit such as m, k, M, Ki or Mi")
    return amount


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction | None:
    """The amount; None if the text is no quantity. Nodes and pods of a cluster repeat few texts."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    number, exponent, unit = found.groups()
    power = int(exponent or 0)
    if abs(power) > _LONGEST:
        raise ValueError(f"{text!r} is not a quantity that can be computed: write a smaller exponent")
    return Fraction(number) * Fraction(10) ** power * _UNITS[unit or ""]
