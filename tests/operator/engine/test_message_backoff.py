"""Who keeps talking is listened to less and less, and who was silent for a while begins anew."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grove.operator.engine.message_backoff import MessageBackoff


def recorded(backoff: MessageBackoff[str], moments: list[float]) -> list[float]:
    """When one is listened to who speaks at these moments."""
    listened = []
    for now in moments:
        if backoff.due_at("key", now) <= now:
            backoff.record("key", now)
            listened.append(now)
    return listened


def test_the_pauses_become_longer_up_to_a_minute():
    every_second = [float(second) for second in range(300)]
    assert recorded(MessageBackoff(), every_second) == [2, 6, 14, 30, 62, 122, 182, 242]


def test_who_was_silent_for_two_minutes_begins_anew():
    backoff = MessageBackoff()
    assert recorded(backoff, [float(second) for second in range(63)]) == [2, 6, 14, 30, 62]
    assert recorded(backoff, [190.0, 191.0, 192.0, 193.0]) == [192.0]


def test_asking_changes_nothing():
    backoff = MessageBackoff()
    assert {backoff.due_at("key", now) for now in (10.0, 10.5, 11.9, 12.0, 13.0)} == {12.0}
    assert backoff.due_at("other", 13.0) == 15.0
    backoff.forget("key")
    assert backoff.due_at("key", 13.0) == 15.0


@given(st.lists(st.floats(0.0, 10_000.0), max_size=200))
def test_nobody_is_heard_more_often_than_the_pauses_allow_nor_waits_for_ever(moments):
    moments = sorted(moments)
    listened = recorded(backoff := MessageBackoff(), moments)
    assert all(later - earlier > 1.99 for earlier, later in pairwise(listened))
    if moments:
        assert backoff.due_at("key", moments[-1]) <= moments[-1] + 60.0
