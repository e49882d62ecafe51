"""The latest events of the operator: how many are kept, and which are new."""

from __future__ import annotations

import msgspec
import pytest

from grove import timing
from grove.dashboard.state.recent_events import EventStore, RecentEvents
from grove.explanation.events import Event
from tests.dashboard.state.histories import an_event


def add(events: RecentEvents, namespace: str, name: str, second: int = 0, **fields: object) -> None:
    body = {**an_event(namespace, name, "gang", second), **fields}
    EventStore(events, "operator", None).apply_event("ADDED", msgspec.convert(body, Event))


def names(found) -> list[str]:
    return [f"{each.namespace}/{each.event.name}" for each in found]


async def test_repeated_event_replaces_the_first_one():
    events = RecentEvents()
    add(events, "a", "x", 1)
    add(events, "a", "y", 2)
    assert names(events.take_new()) == ["a/x", "a/y"]
    series = {"count": 7, "lastObservedTime": "2027-01-15T07:00:30.000000Z"}
    add(events, "a", "x", 1, series=series)
    add(events, "a", "y", 2)  # as it was
    assert names(events.take_new()) == ["a/x"]
    assert [each.event.count for each in events.all()] == [1, 7]
    assert names(events.all()) == ["a/y", "a/x"]


async def test_busy_namespace_does_not_hide_others(monkeypatch):
    monkeypatch.setattr(timing, "DASHBOARD_EVENTS_PER_NAMESPACE", 2)
    monkeypatch.setattr(timing, "DASHBOARD_EVENT_NAMESPACES", 2)
    events = RecentEvents()
    add(events, "quiet", "z", 0)
    for second in (3, 1, 4, 2):
        add(events, "busy", f"x{second}", second)
    assert names(events.all()) == ["quiet/z", "busy/x3", "busy/x4"]
    add(events, "third", "y", 5)
    assert names(events.all()) == ["busy/x3", "busy/x4", "third/y"]
    assert names(events.take_new()) == names(events.all())


@pytest.mark.parametrize("time", [None, "", "soon"])
async def test_event_without_a_time_is_ignored(time):
    events = RecentEvents()
    add(events, "a", "x", eventTime=time)
    assert events.all() == []


async def test_long_texts_of_an_event_are_cut():
    events, long = RecentEvents(), "ä" * 100_000
    regarding = {"kind": long, "name": long, "namespace": "a"}
    add(events, "a", "x", note=long, reason=long, type=long, regarding=regarding)
    (found,) = events.all()
    assert len(found.event.message) == timing.SHOWN_MESSAGE
    assert found.event.message.endswith("ä…")
    assert len(msgspec.json.encode(found)) < 6_000
