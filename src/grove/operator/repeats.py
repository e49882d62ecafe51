"""Plans that come again although all of them was done: something undoes them, or they have no effect."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from grove.api.intents import Intent
from grove.operator.keys import WorkloadKey

log = structlog.get_logger("grove.operator")


class Repeats:
    """Remembers what was done last for each key."""

    def __init__(self) -> None:
        self._last: dict[WorkloadKey, tuple[str, ...]] = {}

    def again(self, key: WorkloadKey, done: Sequence[Intent]) -> bool:
        """Whether the same was done before, with nothing else in between."""
        ids = tuple(intent.id for intent in done)
        again = bool(ids) and self._last.get(key) == ids
        if ids:
            self._last[key] = ids
        else:
            self._last.pop(key, None)
        if again:
            log.warning("plan has no effect", key=str(key), action="back off", reason=", ".join(ids[:3]))
        return again

    def forget(self, key: WorkloadKey) -> None:
        self._last.pop(key, None)
