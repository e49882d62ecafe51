"""What plans complain of, as events."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from grove.api.cliques import PodClique
from grove.api.events import Reporter
from grove.api.gangs import PodGang
from grove.api.intents import ObjectRef, Occurrence
from grove.api.sets import PodCliqueSet
from grove.operator.caches import Caches
from grove.operator.keys import SetKey
from grove.plan.model import Complaint


class Grievances:
    """Gangs that cannot be told to their scheduler, and sets that ask for too many pods: an event when that
    begins, not on every pass. What the objects say already was told by whoever led before."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._told: dict[Hashable, frozenset[tuple[str, str]]] = {}

    def news(self, key: Hashable, namespace: str, complaints: Sequence[Complaint]) -> Iterator[Occurrence]:
        """What has not been told yet about a key."""
        if not complaints and key not in self._told:
            return
        before, current = self._told.get(key, frozenset()), set()
        for each in complaints:
            about, reporter = self._about(key, namespace, each)
            mark = (each.gang, each.words)
            if about is None or mark in current:
                continue
            current.add(mark)
            if mark not in before and not self._stored(key, namespace, each):
                kind, meta = about.KIND, about.metadata
                yield Occurrence(
                    ObjectRef(kind.api_version, kind.name, meta.name, meta.namespace, meta.uid),
                    each.reason,
                    each.words,
                    action="Sync",
                    warning=True,
                    reporter=reporter.value,
                )
        self.forget(key)
        if current:
            self._told[key] = frozenset(current)

    def forget(self, key: Hashable) -> None:
        """There is no such key any more."""
        self._told.pop(key, None)

    def _about(
        self, key: Hashable, namespace: str, complaint: Complaint
    ) -> tuple[PodGang | PodCliqueSet | None, Reporter]:
        """The object on which a complaint is an event."""
        if complaint.gang:
            return self._caches.gangs.get(namespace, complaint.gang), Reporter.SCHEDULER_BACKEND
        if complaint.reason and isinstance(key, SetKey):
            return self._caches.sets.get(key.namespace, key.name), Reporter.SET
        return None, Reporter.SET

    def _stored(self, key: Hashable, namespace: str, complaint: Complaint) -> bool:
        found: PodClique | PodCliqueSet | None = self._caches.cliques.get(namespace, complaint.clique)
        if not complaint.gang and isinstance(key, SetKey):
            found = self._caches.sets.get(key.namespace, key.name)
        errors = found.status.last_errors if found is not None else ()
        return any(error.code == complaint.code and complaint.words in error.description for error in errors)
