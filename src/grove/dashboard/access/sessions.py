"""Sessions of signed-in users, in memory only. Pure, apart from clock and random identifiers."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable

from grove import timing
from grove.dashboard.access.tenants import tenant_of
from grove.dashboard.rights import User

_IDENTIFIER_BYTES = 32


class Session:
    """A user who has signed in. The token is reviewed again while the session lasts."""

    def __init__(self, token: str, user: User, now: float) -> None:
        self.token, self.user, self.tenant = token, user, tenant_of(user.name)
        self.begun = self.used = now
        self.ended = asyncio.Event()

    def is_over(self, now: float) -> bool:
        """Whether it has lasted too long, or was not used for too long."""
        return now >= self.begun + timing.SESSION_LIFETIME or now >= self.used + timing.SESSION_IDLE


class Sessions:
    """All sessions, by the hash of their identifiers: a copy of the memory has no valid cookie. The one that
    was used last is the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, token: str, user: User) -> str:
        """Begin a session and return its identifier. Above a number, in total, for a user and for all
        ServiceAccounts of a namespace, the session ends that was not used for longest."""
        now = self._clock()
        for key in [key for key, each in self._sessions.items() if each.is_over(now)]:
            self._end(key)
        own = [key for key, each in self._sessions.items() if each.user.name == user.name]
        tenant = tenant_of(user.name)
        shared = [key for key, each in self._sessions.items() if tenant and each.tenant == tenant]
        if len(own) >= timing.SESSIONS_PER_USER:
            self._end(own[0])
        elif len(shared) >= timing.SESSIONS_PER_TENANT:
            self._end(shared[0])
        elif len(self._sessions) >= timing.SESSIONS:
            self._end(next(iter(self._sessions)))
        identifier = secrets.token_urlsafe(_IDENTIFIER_BYTES)
        self._sessions[_key(identifier)] = Session(token, user, now)
        return identifier

    def find(self, identifier: str) -> Session | None:
        """The session of an identifier, which is used now."""
        key, now = _key(identifier), self._clock()
        session = self._sessions.get(key)
        if session is None:
            return None
        if session.is_over(now):
            self._end(key)
            return None
        session.used = now
        self._sessions[key] = self._sessions.pop(key)
        return session

    def end(self, identifier: str) -> None:
        """End the session of an identifier, if there is one."""
        self._end(_key(identifier))

    def _end(self, key: bytes) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.ended.set()


def _key(identifier: str) -> bytes:
    return hashlib.sha256(identifier.encode(errors="replace")).digest()
