"""Sizes of the measurements. All counts follow from the sizes, so that a trial is small in every part."""

from __future__ import annotations

from typing import NamedTuple

SIZES = (1000, 2000, 5000, 10000)
CYCLES = 50
PODS_OF_A_SET = 5


class Scale(NamedTuple):
    """Numbers of pods, in ascending order, and of cycles of making and deleting the first number."""

    sizes: tuple[int, ...] = SIZES
    cycles: int = CYCLES

    @property
    def restarted(self) -> int:
        """Pods that exist when the operator restarts."""
        return self.sizes[-1]

    @property
    def sets(self) -> int:
        """Sets that are created at once: 200."""
        return self.sizes[0] // PODS_OF_A_SET

    @property
    def started(self) -> int:
        """Replicas that start beside a small set: 5,000."""
        return self.sizes[-1] // 2

    @property
    def cycled(self) -> int:
        """Pods that are made and deleted in each cycle."""
        return self.sizes[0]


def parse_sizes(text: str) -> tuple[int, ...]:
    """The sizes of `1000,2000`; raises ValueError for what cannot be measured."""
    sizes = tuple(int(part) if part.isdecimal() else 0 for part in text.split(","))
    if sizes != tuple(sorted(set(sizes))) or any(size < 8 or size % 8 for size in sizes):
        raise ValueError(f"--sizes {text}: give multiples of 8 in ascending order, such as 40,80")
    return sizes
