"""Python's garbage collector, told what an operator is like.

It looks for cycles whenever some hundred objects have been made, and each look goes over everything that is
alive: with thousands of cached objects that was a third of the operator's CPU (9.3 s against 6.4 s for 1000
pods). Our wire types make no cycles. So it looks seldom, and what the caches held at the start not at all.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (100_000, 50, 100)


def raise_thresholds() -> None:
    """Once for a process, before it begins."""
    gc.set_threshold(*_THRESHOLDS)


def freeze_cached_objects() -> None:
    """After the first sync: what is cached now will mostly live as long as the process."""
    gc.collect()
    gc.freeze()
