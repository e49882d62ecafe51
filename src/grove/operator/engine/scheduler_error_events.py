"""Events for errors in plans that concern gangs and schedulers, or the limit on pods of a set."""

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
    """Emits an event when an error appears, not on every pass: gangs whose scheduler object cannot be
    written, and sets that request too many pods. An error that is in `status.lastErrors` already was emitted
    by a former leader."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._reported: dict[Hashable, frozenset[tuple[str, str]]] = {}

    def new_events(
        self, key: Hashable, namespace: str, user_errors: Sequence[UserError]
    ) -> Iterator[EventRecord]:
        """The events for errors of a key that were not reported yet."""
        if not user_errors and key not in self._reported:
            return
        before, current = self._reported.get(key, frozenset()), set()
        for each in user_errors:
            about, reporter = self._about(key, namespace, each)
            identity = (each.gang, each.message)
            if about is None or identity in current:
                continue
            current.add(identity)
            if identity not in before and not self._stored(key, namespace, each):
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
            self._reported[key] = frozenset(current)

    def forget(self, key: Hashable) -> None:
        """Drop the state of a key that no longer exists, or that has no errors any more."""
        self._reported.pop(key, None)

    def _about(
        self, key: Hashable, namespace: str, user_error: UserError
    ) -> tuple[PodGang | PodCliqueSet | None, EventReporter]:
        """The object of the event for an error, and its reporting controller."""
        if user_error.gang:
            return self._caches.gangs.get(namespace, user_error.gang), EventReporter.SCHEDULER_BACKEND
        if user_error.reason and isinstance(key, SetKey):
            return self._caches.sets.get(key.namespace, key.name), EventReporter.SET
        return None, EventReporter.SET

    def _stored(self, key: Hashable, namespace: str, user_error: UserError) -> bool:
        """Whether `status.lastErrors` of the clique or the set contains the error already."""
        found: PodClique | PodCliqueSet | None = self._caches.cliques.get(namespace, user_error.clique)
        if not user_error.gang and isinstance(key, SetKey):
            found = self._caches.sets.get(key.namespace, key.name)
        errors = found.status.last_errors if found is not None else ()
        return any(
            error.code == user_error.code and user_error.message in error.description for error in errors
        )
