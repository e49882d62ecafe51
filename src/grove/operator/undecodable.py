"""Reports objects that cannot be decoded: on the set that they belong to; sets and topologies, on themselves.

An undecodable ResourceClaimTemplate belongs to the sets that refer to it; their plans report it
(`grove.plan.claims`), and one that no set refers to is no concern of the operator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from grove.api.errors import ErrorCode, Operation, describe
from grove.api.events import EventReason, Reporter
from grove.api.intents import ObjectRef, Occurrence
from grove.api.parts import LastError
from grove.kube.cache import Cache
from grove.kube.resource import Resource
from grove.kube.undecodable import Undecodable
from grove.operator.keys import SetKey, set_of
from grove.plan.moments import rfc3339

_MOST_ERRORS = 8  # of one set: its status has room for 16


class UndecodableObjects:
    """Follows the undecodable objects of several caches, for one leader."""

    def __init__(
        self,
        *,
        reported_on_themselves: Iterable[Cache[Any]],
        reported_on_sets: Iterable[Cache[Any]] = (),
        emit: Callable[[Occurrence], None],
        wake: Callable[[SetKey], None] = lambda _: None,
        clock: Callable[[], float],
        reporter: str = Reporter.SET,
    ) -> None:
        self._emit, self._wake, self._clock, self._reporter = emit, wake, clock, reporter
        self._errors: dict[SetKey, dict[tuple[str, str, str], LastError]] = {}
        self._follow(reported_on_themselves, self._emit_event)
        self._follow(reported_on_sets, self._update_errors)

    def errors(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors of a set whose own objects cannot be decoded."""
        return tuple(self._errors.get(key, {}).values())[:_MOST_ERRORS]

    @staticmethod
    def _follow(caches: Iterable[Cache[Any]], handle: Callable[[Cache[Any], Undecodable], None]) -> None:
        for cache in caches:
            for found in tuple(cache.undecodable.values()):
                handle(cache, found)
            cache.on_undecodable(partial(handle, cache))

    def _emit_event(self, cache: Cache[Any], found: Undecodable) -> None:
        if found.key not in cache.undecodable or not found.metadata.name:
            return
        resource, meta = cache.resource, found.metadata
        about = ObjectRef(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)
        note = f"{_words(found, resource)}; the operator leaves it as it is until then"
        self._emit(
            Occurrence(
                about, EventReason.DECODE_FAILED, note, "Decode", warning=True, reporter=self._reporter
            )
        )

    def _update_errors(self, cache: Cache[Any], found: Undecodable) -> None:
        key = set_of(found.metadata)
        if key is None:
            return
        errors, about = self._errors.setdefault(key, {}), (cache.resource.label, *found.key)
        if found.key in cache.undecodable:
            code = ErrorCode.DECODE_OBJECT
            description = describe(Operation.LIST, code, _words(found, cache.resource))
            errors[about] = LastError(code, description, rfc3339(self._clock()))
        else:
            errors.pop(about, None)
        if not errors:
            del self._errors[key]
        self._wake(key)


def _words(found: Undecodable, resource: Resource) -> str:
    return f"cannot decode {resource.kind} {'/'.join(filter(None, found.key))} ({found.reason}): correct it"
