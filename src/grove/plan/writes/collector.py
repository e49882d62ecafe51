"""The writes of a plan as they come together, each listed after those that it depends on.

An object is written once in a plan. What else it needs follows when that write shows in the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from grove.api.intents import Intent
from grove.plan.writes.builders import GroveObject, confirm, delete


def merge_writes(plans: Iterable[Iterable[Intent]]) -> tuple[Intent, ...]:
    """Several plans as one: what they have in common, such as confirming the same count, is written once."""
    writes = WriteCollector()
    for intents in plans:
        writes.add_all(intents)
    return writes.intents()


def bounded(intents: Sequence[Intent], most: int, failed: Collection[str]) -> tuple[Intent, ...]:
    """At most so many writes of a plan. Each is listed after those that it depends on, so that any beginning
    of the list can be carried out by itself, and the next plan goes on from there. What failed before comes
    last, with what depends on it: it must not keep the rest from being tried."""
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
    """Collects intents. Nothing in it can be seen before the plan is returned."""

    def __init__(self, intents: Iterable[Intent] = ()) -> None:
        self._intents: dict[str, Intent] = {}
        self.add_all(intents)

    def add(self, intent: Intent) -> str:
        """Plan a write. Its id is what others come after."""
        self._intents.setdefault(intent.id, intent)
        return intent.id

    def add_all(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            self.add(intent)

    def confirm(self, found: GroveObject) -> str:
        """A write that fails if the object has changed since we looked; a change of it that is planned
        already does so as well."""
        return self.add(confirm(found))

    def writes_for(self, found: GroveObject) -> tuple[str, ...]:
        """What is planned for an object that was seen."""
        return tuple(id_ for id_ in (confirm(found).id, delete(found).id) if id_ in self._intents)

    def planned_ids(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the writes that are planned."""
        return tuple(id_ for id_ in ids if id_ in self._intents)

    def intents(self) -> tuple[Intent, ...]:
        return tuple(self._intents.values())
