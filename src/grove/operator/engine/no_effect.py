"""Detects plans that repeat although all of their writes succeeded: another writer reverts them, or they have
no effect. The engine then requeues the key with back-off instead of writing in a loop."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from grove.api.intents import Intent, Patch, Status
from grove.logger import get_logger
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import Key

# A UID that was not known when the write was planned belongs to an object of the same plan: its name stands
# for it. Everything else in a body is plain data.
_encode = msgspec.json.Encoder(enc_hook=repr, order="deterministic").encode
_TIMES = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^"]*"')

log = get_logger("grove.operator")


def has_no_effect(key: Key, state: KeyState, done: Sequence[Intent]) -> bool:
    """Whether the previous plan of the key had the same writes."""
    writes = tuple((intent.id, _content(intent)) for intent in done)
    repeated = bool(writes) and state.last_writes == writes
    state.last_writes = writes
    if repeated:
        ids = [intent.id for intent in done[:3]]
        log.warning("plan has no effect", key=str(key), action="back off", reason=", ".join(ids))
    return repeated


def _content(intent: Intent) -> int:
    """What distinguishes two writes of one object: an update writes a status several times, and each has an
    effect. The version that a write expects and the time of a decision are none of it."""
    if not isinstance(intent, Patch | Status):
        return 0
    body = intent.body
    if isinstance(body, dict) and "resourceVersion" in body.get("metadata", ()):
        metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
        body = {**body, "metadata": metadata}
    return hash(_TIMES.sub(b"", _encode(body)))
