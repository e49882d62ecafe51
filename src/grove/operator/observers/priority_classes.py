"""Whether the PriorityClass that a set names exists.

A class and a set that names it may be created together, and the caches of both are filled independently. So a
class that is not in the cache counts as missing only after a few seconds. Until then its name is in the pods:
if it exists they are created with it, and if not the API server refuses them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import BY_PRIORITY_CLASS, Caches
from grove.plan.snapshot import PriorityLookup

_NOTHING = PriorityLookup()


class PriorityClassLookup:
    """Looks up PriorityClasses by name, and remembers since when each one is missing."""

    def __init__(self, caches: Caches, clock: Callable[[], float] = time.time) -> None:
        self._classes, self._sets, self._clock = caches.priority_classes, caches.sets, clock
        self._due: dict[str, float] = {}
        """By name, when a class that is not found counts as missing."""
        caches.sets.subscribe(self._on_set)

    def of(self, workload: PodCliqueSet) -> PriorityLookup:
        """Whether the class of a set is missing. If classes cannot be listed, it is not: only the API server
        knows."""
        name = workload.spec.template.priority_class_name
        if not name or not self._classes.synced.is_set():
            return _NOTHING
        if self._classes.get("", name) is not None:
            self._due.pop(name, None)
            return _NOTHING
        now = self._clock()
        due = self._due.setdefault(name, now + timing.PRIORITY_CLASS_DELAY)
        return PriorityLookup(missing=True) if now >= due else PriorityLookup(due=due)

    def _on_set(self, old: PodCliqueSet | None, _new: PodCliqueSet | None) -> None:
        """Forget a class that no set names any more: with its next set it may be created again."""
        name = old.spec.template.priority_class_name if old is not None and self._due else ""
        if name in self._due and not self._sets.by_index(BY_PRIORITY_CLASS, name):
            del self._due[name]
