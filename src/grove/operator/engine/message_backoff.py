"""Back-off for messages of schedulers that change all the time.

Schedulers repeat why a gang waits, with other numbers each time. The first message is delayed for two
seconds: most gangs are scheduled by then, and the message is obsolete. From then on each pause is twice as
long as the one before, up to a minute. After two minutes without a message, the back-off starts from the
beginning.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from grove import timing

K = TypeVar("K", bound=Hashable)


class MessageBackoff(Generic[K]):
    """Keeps, for each key, when its message was last used, and the pause from then on."""

    def __init__(self) -> None:
        self._pauses: dict[K, tuple[float, float]] = {}

    def due_at(self, key: K, now: float) -> float:
        """When a message of the key that arrived at `now` may be used."""
        since, pause = self._pauses.get(key, (0.0, 0.0))
        if not pause or now >= since + 2 * timing.SCHEDULER_MESSAGE_MAX_PAUSE:
            since, pause = self._pauses[key] = now, timing.SCHEDULER_MESSAGE_FIRST_PAUSE
        return since + pause

    def record(self, key: K, now: float) -> None:
        """The message of the key is used now: the next pause is longer."""
        _, pause = self._pauses.get(key, (0.0, 0.0))
        self._pauses[key] = (
            now,
            min(2 * pause or timing.SCHEDULER_MESSAGE_FIRST_PAUSE, timing.SCHEDULER_MESSAGE_MAX_PAUSE),
        )

    def forget(self, key: K) -> None:
        """Drop the state of a key that no longer exists."""
        self._pauses.pop(key, None)
