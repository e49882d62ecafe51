"""How long fuzzers run: a fixed number of examples in an ordinary run, more of them on request.

An ordinary run tries the same examples every time, so that a failure is caused by the change under test.
`GROVE_FUZZ=100` tries a hundred times as many, and new ones in every run.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from random import Random

from hypothesis import HealthCheck, settings

FACTOR = max(1, int(os.environ.get("GROVE_FUZZ") or 1))
EXPLORE = "GROVE_FUZZ" in os.environ
"""Whether new examples are tried. A failure prints how to reproduce it."""


def budget(examples: int) -> settings:
    """The hypothesis settings of a property test: a decorator above `@given`."""
    return settings(
        max_examples=examples * FACTOR,
        derandomize=not EXPLORE,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def seeds(count: int) -> Iterator[tuple[int, Random]]:
    """A random number generator for fuzzers, and its seed, which a failure names."""
    first = secrets.randbelow(2**32) if EXPLORE else 0
    for seed in range(first, first + count * FACTOR):
        yield seed, Random(seed)
