"""Secondary indexes of a cache: objects by a value other than their name.

Most values have one object, which is stored without a collection to save memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from grove.kube import metrics
from grove.logger import get_logger

Key = tuple[str, str]
T = TypeVar("T")
IndexFunction = Callable[[T], Iterable[Hashable]]
log = get_logger("grove.kube")


class KeyIndex:
    """The keys of objects, by an indexed value."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, Key | dict[Key, None]] = {}

    def get(self, value: Hashable) -> Collection[Key]:
        """The keys of the objects with the value, in the order in which they were added."""
        keys = self._keys.get(value, {})
        return keys if isinstance(keys, dict) else (keys,)

    def add(self, value: Hashable, key: Key) -> None:
        """Record that the object has the value."""
        keys = self._keys.get(value)
        if keys is None:
            self._keys[value] = key
        elif isinstance(keys, dict):
            keys[key] = None
        elif keys != key:
            self._keys[value] = {keys: None, key: None}

    def remove(self, value: Hashable, key: Key) -> None:
        """Record that the object, which had the value, does not have it any more."""
        keys = self._keys[value]
        if isinstance(keys, dict):
            del keys[key]
        if not isinstance(keys, dict) or not keys:
            del self._keys[value]


class Indexes(Generic[T]):
    """The named indexes of one cache. `label` names its resource in logs and metrics."""

    def __init__(self, functions: Mapping[str, IndexFunction[T]], label: str) -> None:
        self._functions = dict(functions)
        self._key_indexes = {name: KeyIndex() for name in functions}
        self._label = label

    def get(self, index: str, value: Hashable) -> Collection[Key]:
        """The keys of the objects for which the named function yields the value."""
        return self._key_indexes[index].get(value)

    def update(self, key: Key, old: T | None, new: T | None) -> None:
        """Update all indexes after a change; `old` is None for an added object, `new` for a removed one."""
        for name, key_index in self._key_indexes.items():
            before, after = self._values(name, key, old), self._values(name, key, new)
            for value in before - after:
                key_index.remove(value, key)
            for value in after - before:
                key_index.add(value, key)

    def _values(self, name: str, key: Key, found: T | None) -> set[Hashable]:
        """The indexed values of an object. A function that fails yields nothing, each time for the same
        object, so that add and remove stay consistent."""
        if found is None:
            return set()
        try:
            return set(self._functions[name](found))
        except Exception as bug:
            metrics.handler_failures_total.labels(self._label).inc()
            log.exception("index function failed", key="/".join(key), action=f"index {name}", reason=str(bug))
            return set()
