"""Objects by something other than their name. Most values have one object: they need no collection."""

from __future__ import annotations

from collections.abc import Collection, Hashable

Key = tuple[str, str]


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
