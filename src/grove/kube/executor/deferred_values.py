"""Puts UIDs that were unknown at planning time into the bodies and names of a plan, while they are encoded.

A `DeferredValue` names the intent whose reply brings the UID. The encoder resolves it when it reaches it, so
that a body is traversed once, at the speed of the encoder, and no text of a user is taken for a placeholder.
"""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.intents import DeferredValue


class DeferredValues:
    """The UIDs known so far in one plan."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        self.encode = msgspec.json.Encoder(enc_hook=self._resolve).encode

    def resolve(self, value: str) -> str:
        """A name or UID as it is sent."""
        return self._resolve(value) if isinstance(value, DeferredValue) else value

    def _resolve(self, value: Any) -> str:
        if not isinstance(value, DeferredValue):
            raise TypeError(f"a {type(value).__name__} cannot be sent: put plain data into intents")
        uid = self.uids.get(value.intent)
        if not uid:
            raise ValueError(f"{value!r} is not known: name '{value.intent}' in `after`")
        return value.resolve(uid)
