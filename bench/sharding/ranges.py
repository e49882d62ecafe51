"""Ranges of the hash of a namespace, as Kubernetes' `shardSelector` has them (KEP-5866).

The API server hashes `metadata.namespace` with 64-bit FNV-1a and keeps the objects whose hash is in a range
[start, end).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

SPACE = 1 << 64
_OFFSET, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_STEPS = 40
"""Halvings of the interval in which the smallest possible maximum is searched."""


class HashRange(NamedTuple):
    """A range of hashes; `end` is not in it."""

    start: int
    end: int

    @property
    def selector(self) -> str:
        """The list option that selects the objects of the range."""
        return f"shardRange(object.metadata.namespace, '0x{self.start:016x}', '0x{self.end:016x}')"


@cache
def hash_of(namespace: str) -> int:
    """FNV-1a, 64 bits, as in k8s.io/apimachinery/pkg/sharding."""
    value = _OFFSET
    for byte in namespace.encode():
        value = (value ^ byte) * _PRIME % SPACE
    return value


def equal_ranges(count: int) -> list[HashRange]:
    """The hash space in ranges of the same size."""
    bounds = [SPACE * index // count for index in range(count + 1)]
    return [HashRange(*pair) for pair in pairwise(bounds)]


def ranges_by_load(loads: Mapping[str, float], count: int) -> list[HashRange]:
    """At most `count` ranges whose largest load is as small as whole namespaces allow."""
    by_hash: dict[int, float] = {}
    for namespace, load in loads.items():
        by_hash[hash_of(namespace)] = by_hash.get(hash_of(namespace), 0.0) + load
    hashes = sorted(by_hash)
    ordered = [by_hash[each] for each in hashes]
    low, high = max(ordered, default=0.0), sum(ordered)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if len(_starts(ordered, middle)) <= count else (middle, high)
    bounds = [0, *(hashes[index] for index in _starts(ordered, high)[1:]), SPACE]
    return [HashRange(*pair) for pair in pairwise(bounds)]


def _starts(loads: Sequence[float], most: float) -> list[int]:
    """Where ranges begin if each takes namespaces, in their order, up to this load."""
    starts, filled = [0], 0.0
    for index, load in enumerate(loads):
        if filled + load > most and index > starts[-1]:
            starts.append(index)
            filled = 0.0
        filled += load
    return starts


def loads_of(ranges: Sequence[HashRange], loads: Mapping[str, float]) -> list[float]:
    """The load of each range. The ranges are in order, and cover the hash space."""
    starts, found = [each.start for each in ranges], [0.0] * len(ranges)
    for namespace, load in loads.items():
        found[bisect_right(starts, hash_of(namespace)) - 1] += load
    return found
