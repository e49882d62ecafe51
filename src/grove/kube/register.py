"""Objects by something other than their name. Most values have one object: they need no collection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

import structlog

from grove.kube import metrics

Key = tuple[str, str]
T = TypeVar("T")
Index = Callable[[T], Iterable[Hashable]]
log = structlog.get_logger("grove.kube")


class Register:
    """The keys of objects, by a value that they have."""

    def __init__(self) -> None:
        self._held: dict[Hashable, Key | dict[Key, None]] = {}

    def get(self, value: Hashable) -> Collection[Key]:
        """In the order in which they came."""
        held = self._held.get(value, {})
        return held if isinstance(held, dict) else (held,)

    def add(self, value: Hashable, key: Key) -> None:
        """The object has the value now."""
        held = self._held.get(value)
        if held is None:
            self._held[value] = key
        elif isinstance(held, dict):
            held[key] = None
        elif held != key:
            self._held[value] = {held: None, key: None}

    def remove(self, value: Hashable, key: Key) -> None:
        """The object, which had the value, does not any more."""
        held = self._held[value]
        if isinstance(held, dict):
            del held[key]
        if not isinstance(held, dict) or not held:
            del self._held[value]


class Indexes(Generic[T]):
    """The named indexes of one cache. `label` names its resource in logs and metrics."""

    def __init__(self, functions: Mapping[str, Index[T]], label: str) -> None:
        self._functions = dict(functions)
        self._registers = {name: Register() for name in functions}
        self._label = label

    def get(self, index: str, value: Hashable) -> Collection[Key]:
        """The keys of the objects for which the named function yields the value."""
        return self._registers[index].get(value)

    def update(self, key: Key, old: T | None, new: T | None) -> None:
        """An object changed; None: it was not there, it is gone."""
        for name, register in self._registers.items():
            before, after = self._values(name, key, old), self._values(name, key, new)
            for value in before - after:
                register.remove(value, key)
            for value in after - before:
                register.add(value, key)

    def _values(self, name: str, key: Key, found: T | None) -> set[Hashable]:
        """A function that fails yields nothing, each time for the same object, so the index stays right."""
        if found is None:
            return set()
        try:
            return set(self._functions[name](found))
        except Exception as bug:
            metrics.handler_failures_total.labels(self._label).inc()
            log.exception("index function failed", key="/".join(key), action=f"index {name}", reason=str(bug))
            return set()
