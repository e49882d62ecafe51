"""Statuses wait for free slots while other writes take them."""

from __future__ import annotations

import pytest

from tests.operator.engine.publishing import Publisher, due_after, starting_group, status, status_update


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


def test_status_waits_while_no_slot_is_free(publisher) -> None:
    changed = status_update(status(0), status(1))
    due_after(publisher, changed, 0.0)
    assert due_after(publisher, changed, 0.3, busy=True) == (False, 20.0)
    assert due_after(publisher, changed, 4.0) == (True, None)


def test_free_slots_release_keys_in_order_and_once(publisher) -> None:
    changed = status_update(status(0), status(1))
    for key in ("a", "b", "c"):
        publisher.due_updates(key, (changed,), 0.0, busy=True)
        publisher.due_updates(key, (changed,), 0.3, busy=True)
    assert publisher.release(2) == ["a", "b"]
    assert publisher.release(2) == [], "the slots are reserved until their passes"
    publisher.due_updates("a", (changed,), 0.4, busy=False)
    assert publisher.release(2) == ["c"]
    publisher.forget("b")
    publisher.forget("c")
    assert publisher.release(2) == []


def test_final_status_is_written_at_once_after_wait_for_slot(publisher) -> None:
    publisher.record_change("key", 0.0, busy=True)
    publisher.record_change("other", 0.1, busy=True)
    publisher.record_change("key", 1.0, busy=True)  # it changed again: others go first
    assert publisher.release(1) == ["other"]
    assert publisher.release(2) == ["key"]
    assert due_after(publisher, status_update(status(0), status(1)), 1.3) == (True, None)


def test_change_after_wait_for_slot_has_quiet_period(publisher) -> None:
    publisher.record_change("key", 0.0, busy=True)
    assert publisher.release(1) == ["key"]
    publisher.record_change("key", 1.0, busy=False)
    assert due_after(publisher, status_update(status(0), status(1)), 1.1) == (False, 1.25)


def test_starting_status_is_not_written_after_wait_for_slot(publisher) -> None:
    publisher.record_change("key", 0.0, busy=True)
    for number in range(100):
        publisher.record_change(number, 0.0, busy=True)
    assert publisher.release(1) == ["key"]
    assert due_after(publisher, starting_group(), 9.0) == (False, 13.02), "each of 100 has two statuses"


def test_wait_for_slot_counts_as_delay_of_status(publisher) -> None:
    publisher.record_change("key", 0.0, busy=True)
    publisher.record_change("key", 19.0, busy=True)
    assert due_after(publisher, status_update(status(0), status(1)), 19.5, busy=True) == (False, 20.0)
    assert due_after(publisher, status_update(status(0), status(2)), 20.0, busy=True) == (True, None)


def test_change_while_slots_are_free_does_not_wait(publisher) -> None:
    publisher.record_change("key", 0.0, busy=True)
    publisher.record_change("key", 1.0, busy=False)
    assert publisher.release(1) == []


@pytest.mark.parametrize("end", ["end_pass", "defer"])
def test_pass_without_statuses_returns_its_slot(publisher, end) -> None:
    changed = status_update(status(0), status(1))
    for key in ("a", "b"):
        publisher.due_updates(key, (changed,), 0.0, busy=True)
        publisher.due_updates(key, (changed,), 0.3, busy=True)
    assert publisher.release(1) == ["a"]
    getattr(publisher, end)("a")
    assert publisher.release(1) == ["b"]


def test_busy_slots_delay_status_by_max_delay_at_most(publisher) -> None:
    changed = status_update(status(0), status(1))
    due_after(publisher, changed, 0.0)
    assert due_after(publisher, changed, 19.9, busy=True) == (False, 20.0)
    assert due_after(publisher, changed, 20.0, busy=True) == (True, None)
    assert publisher.release(1) == []
