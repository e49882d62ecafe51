"""How soon one listens again to somebody who keeps talking.

Schedulers explain over and over why something waits, with other numbers each time. The first words can wait
for a moment: most gangs have their nodes by then, and nothing needs to be said. From then on each pause is
twice as long as the one before, up to a minute. Who has been silent for two begins anew.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_PAUSE = 2.0
_MAX_PAUSE = 60.0


class MessageBackoff(Generic[K]):
    """Knows, for each key, when it was last listened to, and how long the pause is from then on."""

    def __init__(self) -> None:
        self._pauses: dict[K, tuple[float, float]] = {}

    def due_at(self, key: K, now: float) -> float:
        """When the key may be listened to, which has something to say now."""
        since, pause = self._pauses.get(key, (0.0, 0.0))
        if not pause or now >= since + 2 * _MAX_PAUSE:
            since, pause = self._pauses[key] = now, _FIRST_PAUSE
        return since + pause

    def record(self, key: K, now: float) -> None:
        """The key was listened to."""
        _, pause = self._pauses.get(key, (0.0, 0.0))
        self._pauses[key] = now, min(2 * pause or _FIRST_PAUSE, _MAX_PAUSE)

    def forget(self, key: K) -> None:
        """There is no such key any more."""
        self._pauses.pop(key, None)
