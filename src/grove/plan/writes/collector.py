"""Collects the intents of a plan, each after those that it depends on, and their events.

A plan writes each object at most once. Further changes follow when that write is in the informer cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from grove.api.intents import Intent
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import GroveObject, confirm, delete


def merge_writes(plans: Iterable[Iterable[Intent]]) -> tuple[Intent, ...]:
    """Merges several plans: intents that they share, such as confirming the same count, are sent once."""
    writes = WriteCollector()
    for intents in plans:
        writes.add_all(intents)
    return writes.intents()


def bounded(intents: Sequence[Intent], most: int, failed: Collection[str]) -> tuple[Intent, ...]:
    """Returns at most `most` intents of a plan. Each intent comes after its dependencies, so every prefix of
    the list can be executed by itself, and the next plan continues from there. Intents that failed before
    come last, with those that depend on them: they must not keep the others from being sent."""
    late = set(failed)
    first: list[Intent] = []
    last: list[Intent] = []
    for intent in intents:
        if intent.id in late or not late.isdisjoint(intent.after):
            late.add(intent.id)
            last.append(intent)
        else:
            first.append(intent)
    return tuple((first + last)[:most])


class WriteCollector:
    """Collects intents and events for one plan."""

    def __init__(self, intents: Iterable[Intent] = ()) -> None:
        self._intents: dict[str, Intent] = {}
        self.events: list[PlannedEvent] = []
        """The events of intents; those of an intent that is not sent are not emitted."""
        self.add_all(intents)

    def add(self, intent: Intent) -> str:
        """Adds an intent and returns its id, for the `after` of other intents."""
        self._intents.setdefault(intent.id, intent)
        return intent.id

    def add_all(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            self.add(intent)

    def confirm(self, found: GroveObject) -> str:
        """Adds a confirmation, which fails if the object has changed since it was observed. A patch of the
        object that is already planned has the same precondition and is used instead."""
        return self.add(confirm(found))

    def writes_for(self, found: GroveObject) -> tuple[str, ...]:
        """The ids of the intents that are planned for an observed object."""
        return tuple(id_ for id_ in (confirm(found).id, delete(found).id) if id_ in self._intents)

    def planned_ids(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the ids that are planned."""
        return tuple(id_ for id_ in ids if id_ in self._intents)

    def intents(self) -> tuple[Intent, ...]:
        return tuple(self._intents.values())
