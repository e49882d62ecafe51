"""When a pod that ended is replaced: at once, then later and later while its successors end too.

The count of failures travels in an annotation of the pods themselves: it survives restarts, without a store.
A pod that ended is deleted before its successor is created. If the operator stops between the two writes, the
count starts at zero again: one replacement comes without a delay.
"""

from __future__ import annotations

from grove.api import annotations as keys
from grove.api.pods import Pod
from grove.plan.moments import moment

_FIRST = 10.0
_LONGEST = 300.0
_MOST_DOUBLINGS = 10  # any more exceeds the longest delay
_MOST_DIGITS = 6  # the annotation can be edited, and large powers of two take all memory there is
_FORGIVEN_AFTER = 600.0  # a pod that lived that long does not count as a failure in a row


def replacement_due(pod: Pod) -> tuple[float, int]:
    """When to replace an ended pod, and how many have then failed in a row."""
    born = moment(pod.metadata.creation_timestamp)
    died = max((moment(fact.last_transition_time) for fact in pod.status.conditions), default=born)
    earlier = _failures(pod) if died - born < _FORGIVEN_AFTER else 0
    delay = min(_FIRST * 2 ** min(earlier - 1, _MOST_DOUBLINGS), _LONGEST) if earlier else 0.0
    return died + delay, earlier + 1


def _failures(pod: Pod) -> int:
    text = pod.metadata.annotations.get(keys.FAILURES, "")
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
