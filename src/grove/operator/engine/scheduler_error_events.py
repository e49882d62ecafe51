"""What plans complain of, as events."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from grove.api.event_reasons import EventReporter
from grove.api.intents import EventRecord, ObjectRef
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.operator.caches.registry import Caches
from grove.operator.keys import SetKey
from grove.plan.model import UserError


class SchedulerErrorEvents:
    """Gangs that cannot be told to their scheduler, and sets that ask for too many pods: an event when that
    begins, not on every pass. What the objects say already was told by whoever led before."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._told: dict[Hashable, frozenset[tuple[str, str]]] = {}

    def new_events(
        self, key: Hashable, namespace: str, user_errors: Sequence[UserError]
    ) -> Iterator[EventRecord]:
        """What has not been told yet about a key."""
        if not user_errors and key not in self._told:
            return
        before, current = self._told.get(key, frozenset()), set()
        for each in user_errors:
            about, reporter = self._about(key, namespace, each)
            mark = (each.gang, each.message)
            if about is None or mark in current:
                continue
            current.add(mark)
            if mark not in before and not self._stored(key, namespace, each):
                kind, meta = about.KIND, about.metadata
                yield EventRecord(
                    ObjectRef(kind.api_version, kind.name, meta.name, meta.namespace, meta.uid),
                    each.reason,
                    each.message,
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
        self, key: Hashable, namespace: str, user_error: UserError
    ) -> tuple[PodGang | PodCliqueSet | None, EventReporter]:
        """The object on which a complaint is an event."""
        if user_error.gang:
            return self._caches.gangs.get(namespace, user_error.gang), EventReporter.SCHEDULER_BACKEND
        if user_error.reason and isinstance(key, SetKey):
            return self._caches.sets.get(key.namespace, key.name), EventReporter.SET
        return None, EventReporter.SET

    def _stored(self, key: Hashable, namespace: str, user_error: UserError) -> bool:
        found: PodClique | PodCliqueSet | None = self._caches.cliques.get(namespace, user_error.clique)
        if not user_error.gang and isinstance(key, SetKey):
            found = self._caches.sets.get(key.namespace, key.name)
        errors = found.status.last_errors if found is not None else ()
        return any(
            error.code == user_error.code and user_error.message in error.description for error in errors
        )
