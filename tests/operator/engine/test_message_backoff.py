"""Back-off for changing messages: pauses double, and start from the beginning after a quiet time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grove.operator.engine.message_backoff import MessageBackoff


def recorded(backoff: MessageBackoff, times: list[float]) -> list[float]:
    """At which of these times a message is used, if one arrives at each."""
    used = []
    for now in times:
        if backoff.due_at(now) <= now:
            backoff.record(now)
            used.append(now)
    return used


def test_pause_doubles_up_to_one_minute():
    every_second = [float(second) for second in range(300)]
    assert recorded(MessageBackoff(), every_second) == [2, 6, 14, 30, 62, 122, 182, 242]


def test_two_quiet_minutes_reset_backoff():
    backoff = MessageBackoff()
    assert recorded(backoff, [float(second) for second in range(63)]) == [2, 6, 14, 30, 62]
    assert recorded(backoff, [190.0, 191.0, 192.0, 193.0]) == [192.0]


def test_due_at_is_stable_until_recorded():
    backoff = MessageBackoff()
    assert {backoff.due_at(now) for now in (10.0, 10.5, 11.9, 12.0, 13.0)} == {12.0}


@given(st.lists(st.floats(0.0, 10_000.0), max_size=200))
def test_any_message_times_respect_pause_bounds(times):
    times = sorted(times)
    used = recorded(backoff := MessageBackoff(), times)
    assert all(later - earlier > 1.99 for earlier, later in pairwise(used))
    if times:
        assert backoff.due_at(times[-1]) <= times[-1] + 60.0
