"""Detects plans that repeat although all of their writes succeeded: another writer reverts them, or they have
no effect. The engine then requeues the key with back-off instead of writing in a loop."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import structlog

from grove.api.intents import Intent, Patch, Status
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import Key

_TIMES = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^"]*"')

log = structlog.get_logger("grove.operator")


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
    # A nomination of a pod that the same plan creates contains a UID that is not known yet.
    return hash(_TIMES.sub(b"", msgspec.json.encode(body, enc_hook=repr, order="deterministic")))
