"""Decides when a pod that ended is replaced: at once, then with a growing delay while its successors end too.

The number of failures is kept in an annotation of the pods: it survives operator restarts, without a store. A
pod that ended is deleted before its successor is created. If the operator stops between the two writes, the
count starts at zero again: one replacement comes without a delay.
"""

from __future__ import annotations

from grove import timing
from grove.api.naming import annotations as keys
from grove.api.types.pod import Pod
from grove.plan.timestamps import timestamp


def replacement_due(pod: Pod) -> tuple[float, int]:
    """When to replace an ended pod, and how many have then failed in a row."""
    created_at = timestamp(pod.metadata.creation_timestamp)
    ended_at = max(
        (timestamp(condition.last_transition_time) for condition in pod.status.conditions), default=created_at
    )
    earlier = _failures(pod) if ended_at - created_at < timing.CRASH_BACKOFF_RESET else 0
    delay = (
        min(
            timing.CRASH_BACKOFF_FIRST * 2 ** min(earlier - 1, timing.CRASH_BACKOFF_DOUBLINGS),
            timing.CRASH_BACKOFF_LONGEST,
        )
        if earlier
        else 0.0
    )
    return ended_at + delay, earlier + 1


def _failures(pod: Pod) -> int:
    text = pod.metadata.annotations.get(keys.PRIOR_FAILURES, "")
    return int(text) if text.isdecimal() and len(text) <= timing.CRASH_COUNT_DIGITS else 0
