"""Decides when a pod that ended is replaced: at once, then with a growing delay while its successors end too.

The number of failures is kept in an annotation of the pods: it survives operator restarts, without a store. A
pod that ended is deleted before its successor is created. If the operator stops between the two writes, the
count starts at zero again: one replacement comes without a delay.
"""

from __future__ import annotations

from grove.api.naming import annotations as keys
from grove.api.types.pod import Pod
from grove.plan.timestamps import timestamp

_INITIAL_DELAY = 10.0
_MAX_DELAY = 300.0
_MAX_DOUBLINGS = 10  # more exceeds the maximum delay
_MAX_DIGITS = 6  # the annotation can be edited, and large powers of two exhaust memory
_RESET_AFTER = 600.0  # after this long, a failure is not consecutive


def replacement_due(pod: Pod) -> tuple[float, int]:
    """When to replace an ended pod, and how many have then failed in a row."""
    created_at = timestamp(pod.metadata.creation_timestamp)
    ended_at = max(
        (timestamp(condition.last_transition_time) for condition in pod.status.conditions), default=created_at
    )
    earlier = _failures(pod) if ended_at - created_at < _RESET_AFTER else 0
    delay = min(_INITIAL_DELAY * 2 ** min(earlier - 1, _MAX_DOUBLINGS), _MAX_DELAY) if earlier else 0.0
    return ended_at + delay, earlier + 1


def _failures(pod: Pod) -> int:
    text = pod.metadata.annotations.get(keys.PRIOR_FAILURES, "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0
