"""A reason is written within five seconds of the fact, as far as the operator waits on purpose."""

from __future__ import annotations

from grove import timing

BEFORE_A_REASON = {
    "events of pods become one pass": timing.POD_STATUS_DELAY,
    "a round of placement": timing.PLACEMENT_INTERVAL,
    "a check whether nodes can be listed": timing.PLACEMENT_LIST_CHECK,
    "reports of replicas become one status of the set": timing.AGGREGATION_DELAY,
    "the reason must last": max(timing.WAITING_DELAY, timing.STATUS_QUIET_PERIOD),
    "the status of a set becomes that of its graph": timing.BATCH_DELAY + timing.STATUS_QUIET_PERIOD,
}
LIMIT = 5.0


def test_delays_before_a_reason_add_up_to_five_seconds():
    assert sum(BEFORE_A_REASON.values()) <= LIMIT
