"""Namespaces as clusters have them: few large and many small ones, with unrelated or with numbered names."""

from __future__ import annotations

from enum import Enum
from random import Random
from string import ascii_lowercase

LETTERS = (5, 14)
"""The length of a name that has nothing in common with the others."""


class Names(Enum):
    """How the namespaces of a cluster are called."""

    UNRELATED = "unrelated names"
    NUMBERED = "numbered names"


def zipf_loads(names: list[str]) -> dict[str, float]:
    """The share of each namespace: that of the n-th is 1/n of the first (Zipf's law). The sum is 1."""
    weights = [1 / rank for rank in range(1, len(names) + 1)]
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


def names_of(style: Names, count: int, rng: Random) -> list[str]:
    """The names of namespaces, in random order. Numbered ones are `prefix-000`, `prefix-001` and so on."""
    if style is Names.NUMBERED:
        prefix, digits = _word(rng), len(str(count - 1))
        names = [f"{prefix}-{number:0{digits}}" for number in range(count)]
    else:
        unique: dict[str, None] = {}
        while len(unique) < count:
            unique[_word(rng)] = None
        names = list(unique)
    rng.shuffle(names)
    return names


def _word(rng: Random) -> str:
    return "".join(rng.choices(ascii_lowercase, k=rng.randint(*LETTERS)))
