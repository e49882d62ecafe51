"""Detects plans that repeat although all of their writes succeeded: another writer reverts them, or they have
no effect. The engine then requeues the key with back-off instead of writing in a loop."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from grove.api.intents import Intent
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import Key

log = structlog.get_logger("grove.operator")


def has_no_effect(key: Key, state: KeyState, done: Sequence[Intent]) -> bool:
    """Whether the previous plan of the key had the same writes."""
    ids = tuple(intent.id for intent in done)
    repeated = bool(ids) and state.last_writes == ids
    state.last_writes = ids
    if repeated:
        log.warning("plan has no effect", key=str(key), action="back off", reason=", ".join(ids[:3]))
    return repeated
