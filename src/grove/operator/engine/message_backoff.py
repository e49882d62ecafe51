"""Back-off for messages of schedulers that change all the time.

Schedulers repeat why a gang waits, with other numbers each time. The first message is delayed for two
seconds: most gangs are scheduled by then, and the message is obsolete. From then on each pause is twice as
long as the one before, up to a minute. After two minutes without a message, the back-off starts from the
beginning.
"""

from __future__ import annotations

from msgspec import Struct

from grove import timing


class MessageBackoff(Struct):
    """When the message of one key was last used, and the pause from then on."""

    since: float = 0.0
    pause: float = 0.0

    def due_at(self, now: float) -> float:
        """When a message that arrived at `now` may be used."""
        if not self.pause or now >= self.since + 2 * timing.SCHEDULER_MESSAGE_MAX_PAUSE:
            self.since, self.pause = now, timing.SCHEDULER_MESSAGE_FIRST_PAUSE
        return self.since + self.pause

    def record(self, now: float) -> None:
        """The message is used now: the next pause is longer."""
        self.since, self.pause = (
            now,
            min(2 * self.pause or timing.SCHEDULER_MESSAGE_FIRST_PAUSE, timing.SCHEDULER_MESSAGE_MAX_PAUSE),
        )
