"""Detects plans that repeat although all of their writes succeeded: another writer reverts them, or they have
no effect. The controller then requeues the key with back-off instead of writing in a loop."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from grove.api.intents import Intent
from grove.operator.keys import WorkloadKey

log = structlog.get_logger("grove.operator")


class NoEffectDetector:
    """Remembers the writes of the latest plan of each key."""

    def __init__(self) -> None:
        self._last: dict[WorkloadKey, tuple[str, ...]] = {}

    def repeated(self, key: WorkloadKey, done: Sequence[Intent]) -> bool:
        """Whether the previous plan of the key had the same writes."""
        ids = tuple(intent.id for intent in done)
        repeated = bool(ids) and self._last.get(key) == ids
        if ids:
            self._last[key] = ids
        else:
            self._last.pop(key, None)
        if repeated:
            log.warning("plan has no effect", key=str(key), action="back off", reason=", ".join(ids[:3]))
        return repeated

    def forget(self, key: WorkloadKey) -> None:
        self._last.pop(key, None)
