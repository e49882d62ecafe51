"""The latest events of the operator, as watches send them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain

from msgspec.structs import replace

from grove import timing
from grove.api.event_reasons import EventReporter
from grove.dashboard.cut_texts import cut_event
from grove.dashboard.state.visibility import NamespacedEvent
from grove.dynamo.reconcile.events import REPORTER
from grove.explanation.events import Event
from grove.explanation.history import event_view
from grove.kube.client.resource import EVENTS, Resource
from grove.kube.client.undecodable import Undecodable
from grove.plan.timestamps import timestamp

REPORTERS = (*(each.value for each in EventReporter), REPORTER)
"""A field selector has one value, so each reporter is watched by itself."""


class RecentEvents:
    """The latest events of each namespace. Events that the server deletes after an hour stay."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._kept: dict[str, dict[str, NamespacedEvent]] = {}
        self._new: dict[tuple[str, str], NamespacedEvent] = {}

    def add(self, found: NamespacedEvent) -> None:
        """Add an event, or its repetition."""
        name, place = found.event.name, found.namespace
        if self._kept.get(place, {}).get(name) == found or not found.event.time:
            return
        kept = self._kept[place] = self._kept.pop(place, {})  # the namespace with the latest change is last
        kept.pop(name, None)
        kept[name] = self._new[place, name] = found
        if len(kept) > timing.DASHBOARD_EVENTS_PER_NAMESPACE:
            oldest = min(kept, key=lambda each: _order(kept[each]))
            del kept[oldest]
            self._new.pop((place, oldest), None)
        if len(self._kept) > timing.DASHBOARD_EVENT_NAMESPACES:
            place = next(iter(self._kept))
            for name in self._kept.pop(place):
                self._new.pop((place, name), None)
        self._changed()

    def take_new(self) -> tuple[NamespacedEvent, ...]:
        """Those that were added since the last call, the oldest first."""
        new, self._new = self._new, {}
        return tuple(sorted(new.values(), key=_order))

    def all(self) -> list[NamespacedEvent]:
        """All that are kept, the oldest first."""
        return sorted(chain.from_iterable(each.values() for each in self._kept.values()), key=_order)


def _order(found: NamespacedEvent) -> tuple[float, str, str]:
    return timestamp(found.event.time), found.namespace, found.event.name


class EventStore:
    """What the watch of one reporter fills."""

    resource: Resource = EVENTS
    as_type: type[Event] = Event
    labels: str = ""

    def __init__(self, events: RecentEvents, reporter: str, namespace: str | None) -> None:
        self._events, self.namespace = events, namespace
        self.fields = f"reportingController={reporter}"
        self.synced = asyncio.Event()
        self.synced_or_absent = self.synced

    def __len__(self) -> int:
        return 0

    def compact(self, new: Event) -> NamespacedEvent:
        """What is kept of an event. Pages compute its age. One without a time that can be read is ignored."""
        view = replace(event_view(new, 0.0), age_seconds=None)
        return NamespacedEvent(new.metadata.namespace, cut_event(view))

    def apply_event(self, kind: str, new: Event) -> None:
        """Apply one watch event."""
        if kind != "DELETED":
            self._events.add(self.compact(new))

    def apply_undecodable(self, _kind: str, _found: Undecodable) -> None:
        """The operator writes none that cannot be decoded."""

    def apply_bookmark(self, _version: str) -> None:
        """Nothing depends on the version of the watch."""

    def mark_unlistable(self, _reason: str) -> None:
        """The reflector has the reason as its problem."""

    def replace(
        self, listed: Iterable[NamespacedEvent], _list_version: str, _undecodable: Iterable[Undecodable] = ()
    ) -> None:
        """Apply a whole list."""
        for each in listed:
            self._events.add(each)
        self.synced.set()

    def clear(self) -> None:
        """Events are always served."""
        self.synced.set()
