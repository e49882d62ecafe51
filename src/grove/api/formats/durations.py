"""Go's notation for durations (`4h0m0s`, `1.5s`, `250ms`), as in our objects and the configuration file."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_SHOWN = 40  # characters of the text in an error message
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def parse(text: str) -> timedelta:
    """The duration, to the microsecond. Raises ValueError with a message for users."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits == "0":
        return timedelta()
    parts = list(_PART.finditer(digits))
    if not parts or "".join(part[0] for part in parts) != digits:
        raise ValueError(f'"{text[:_SHOWN]}" is not a duration such as "4h0m0s" or "90s"')
    try:
        micros = round(sum(Fraction(part[1]) * _MICROSECONDS[part[2]] for part in parts))
        return sign * timedelta(microseconds=micros)
    except (ValueError, OverflowError):  # numbers with thousands of digits, and a million years
        raise ValueError(f'"{text[:_SHOWN]}" is too long for a duration: shorten it') from None


def render(duration: timedelta) -> str:
    """The duration as Go prints it: `4h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`."""
    micros = duration // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros < 1_000_000:
        return sign + _below_a_second(micros)
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = _decimal(micros, 1_000_000) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _below_a_second(micros: int) -> str:
    if micros == 0:
        return "0s"
    return f"{micros}µs" if micros < 1000 else _decimal(micros, 1000) + "ms"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".")
