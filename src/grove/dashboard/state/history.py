"""The latest changes, from which streams of deltas go on after a reconnect."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice

import msgspec

from grove import timing
from grove.dashboard.model import Delta
from grove.dashboard.rights import Rights
from grove.dashboard.state.changes import Change, delta, merged


class History:
    """A bounded number of changes, each with a number. Versions have a random token instead of it: viewers
    must not learn how often objects change that they do not see. They also name this process and the rights
    of the viewer: after a restart, or with other rights, the picture must be read again."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._changes: deque[Change] = deque()
        self._sizes: deque[int] = deque()
        """Of the same changes, in bytes."""
        self._parts = self._bytes = 0
        self.number = 0
        """Of the latest change."""
        self._token = secrets.token_hex(8)
        self._numbers = {self._token: 0}
        """By token, the numbers of those versions from which a stream can go on, the oldest first."""
        self._published = asyncio.Event()
        self._latest: dict[Rights, Delta | None] = {}
        """By rights, what the latest change changes: most viewers have the same."""

    def publish(self, change: Change) -> None:
        """Add a change, and wake all streams."""
        size = len(msgspec.json.encode(change))
        self._changes.append(change)
        self._sizes.append(size)
        self._parts += change.size
        self._bytes += size
        while self._is_full():
            self._parts -= self._changes.popleft().size
            self._bytes -= self._sizes.popleft()
        self.number += 1
        self._token = secrets.token_hex(8)
        self._numbers[self._token] = self.number
        while len(self._numbers) > len(self._changes) + 1:
            del self._numbers[next(iter(self._numbers))]
        self._latest.clear()
        self._published.set()
        self._published = asyncio.Event()

    def _is_full(self) -> bool:
        return (
            len(self._changes) > timing.DASHBOARD_CHANGES
            or self._parts > timing.DASHBOARD_CHANGED_PARTS
            or self._bytes > timing.DASHBOARD_CHANGED_BYTES
        )

    def version(self, rights: Rights) -> str:
        """The version of a picture that is computed now."""
        return f"{self._prefix(rights)}.{self._token}"

    def _prefix(self, rights: Rights) -> str:
        names = None if rights.namespaces is None else sorted(rights.namespaces)
        described = msgspec.json.encode((self._epoch, names, rights.nodes, rights.unread))
        return f"{self._epoch}{hashlib.sha256(described).hexdigest()[:8]}"

    def _number(self, rights: Rights, version: str) -> int | None:
        """The number of a version; None if it is of another process or of other rights, too old, or no
        version."""
        prefix, _, token = version.partition(".")
        return self._numbers.get(token) if prefix == self._prefix(rights) else None

    async def deltas(self, rights: Rights, since: str) -> AsyncIterator[Delta | None]:
        """What changes after a version, as it changes; a slow reader gets several changes as one. None, which
        is the last one: not all changes since are known."""
        number = self._number(rights, since)
        while number is not None:
            if number == self.number:
                await self._published.wait()
                continue
            missed = self.number - number
            if missed > len(self._changes) or self._is_long(missed):
                break
            found = self._since(rights, number)
            number = self.number
            if found is not None:
                yield found
        yield None

    def _is_long(self, missed: int) -> bool:
        """Whether the latest changes have so many parts that a new picture is read as fast."""
        parts = 0
        for change in islice(reversed(self._changes), missed if missed > 1 else 0):
            parts += change.size
            if parts > timing.DASHBOARD_MISSED_PARTS:
                return True
        return False

    def _since(self, rights: Rights, number: int) -> Delta | None:
        if number == self.number - 1:
            if rights not in self._latest:
                self._latest[rights] = delta(self._changes[-1], rights, self.version(rights))
            return self._latest[rights]
        missed = list(self._changes)[number - self.number :]
        return delta(merged(missed), rights, self.version(rights))
