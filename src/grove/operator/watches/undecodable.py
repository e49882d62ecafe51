"""Reports objects that cannot be decoded: on the set that they belong to; sets and topologies, on themselves.

An undecodable ResourceClaimTemplate belongs to the sets that refer to it; their plans report it
(`grove.plan.resource_claims`), and one that no set refers to is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from grove import timing
from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import EventRecord, ObjectRef
from grove.api.types.common import LastError
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable
from grove.operator.keys import SetKey, set_of
from grove.plan.timestamps import rfc3339


class UndecodableObjects:
    """Watches the undecodable objects of several caches, while this operator is the leader."""

    def __init__(
        self,
        *,
        reported_on_themselves: Iterable[Cache[Any]],
        reported_on_sets: Iterable[Cache[Any]] = (),
        emit: Callable[[EventRecord], None],
        enqueue: Callable[[SetKey], None] = lambda _: None,
        clock: Callable[[], float],
        reporter: str = EventReporter.SET,
    ) -> None:
        self._emit, self._enqueue, self._clock, self._reporter = emit, enqueue, clock, reporter
        self._errors: dict[SetKey, dict[tuple[str, str, str], LastError]] = {}
        self._set_of: dict[tuple[str, str, str], SetKey] = {}
        """The set on which each object was reported: its labels may have changed since."""
        self._subscribe(reported_on_themselves, self._emit_event)
        self._subscribe(reported_on_sets, self._update_errors)

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors of a set whose own objects cannot be decoded."""
        return tuple(self._errors.get(key, {}).values())[: timing.UNDECODABLE_ERRORS_PER_SET]

    @staticmethod
    def _subscribe(caches: Iterable[Cache[Any]], handle: Callable[[Cache[Any], Undecodable], None]) -> None:
        for cache in caches:
            for found in tuple(cache.undecodable.values()):
                handle(cache, found)
            cache.on_undecodable(partial(handle, cache))

    def _emit_event(self, cache: Cache[Any], found: Undecodable) -> None:
        if found.key not in cache.undecodable or not found.metadata.name:
            return
        resource, meta = cache.resource, found.metadata
        about = ObjectRef(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)
        note = f"{_message(found, resource)}; the operator does not change it until then"
        self._emit(
            EventRecord(
                about, EventReason.DECODE_FAILED, note, "Decode", warning=True, reporter=self._reporter
            )
        )

    def _update_errors(self, cache: Cache[Any], found: Undecodable) -> None:
        about, key = (cache.resource.label, *found.key), set_of(found.metadata)
        if (before := self._set_of.pop(about, None)) is not None:
            del self._errors[before][about]
            if not self._errors[before]:
                del self._errors[before]
            self._enqueue(before)
        if key is None or found.key not in cache.undecodable:
            return
        code = ErrorCode.DECODE_OBJECT
        description = describe(Operation.LIST, code, _message(found, cache.resource))
        self._errors.setdefault(key, {})[about] = LastError(code, description, rfc3339(self._clock()))
        self._set_of[about] = key
        self._enqueue(key)


def _message(found: Undecodable, resource: Resource) -> str:
    return f"cannot decode {resource.kind} {'/'.join(filter(None, found.key))} ({found.reason}): correct it"
