"""The connections of one server: how many there may be, and which is closed to make room for a new one.

A server that only refuses connections above its limit can be filled by one peer. So a new connection always
gets its place from a connection that waits: of the same peer, if that peer has too many; else of the peer
with the most. A connection waits during its handshake, while it is idle, and until its request has arrived
whole; one whose request is being answered is never closed.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class ConnectionLimits(Struct, frozen=True):
    """How many connections a server accepts."""

    total: int
    per_peer: int


class Evictable(Protocol):
    """A connection that can be closed."""

    @property
    def peer(self) -> str:
        """The address at its other end, without the port."""
        ...

    def evict(self) -> None:
        """Close the connection at once."""
        ...


class _Peer:
    """The connections of one address, those that wait in the order in which they began to."""

    def __init__(self) -> None:
        self.waiting: dict[Evictable, None] = {}
        self.answering: set[Evictable] = set()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.answering)


class Connections:
    """All open connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._peers: dict[str, _Peer] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, connection: Evictable) -> bool:
        """Add a connection, which waits; False if there is no place for it. May evict another one."""
        own = self._peers.get(connection.peer)
        if own is not None and len(own) >= self._limits.per_peer:
            crowded: _Peer | None = own
        elif self._count >= self._limits.total:
            crowded = max((each for each in self._peers.values() if each.waiting), key=len, default=None)
        else:
            self._insert(connection)
            return True
        if crowded is None or not crowded.waiting:
            return False
        oldest = next(iter(crowded.waiting))
        self.remove(oldest)
        oldest.evict()
        self._insert(connection)
        return True

    def _insert(self, connection: Evictable) -> None:
        self._peers.setdefault(connection.peer, _Peer()).waiting[connection] = None
        self._count += 1

    def remove(self, connection: Evictable) -> None:
        """Remove a connection that is closed; no effect if it was removed before."""
        peer = self._peers.get(connection.peer)
        if peer is None or (connection not in peer.waiting and connection not in peer.answering):
            return
        peer.waiting.pop(connection, None)
        peer.answering.discard(connection)
        self._count -= 1
        if not len(peer):
            del self._peers[connection.peer]

    def begin_answer(self, connection: Evictable) -> None:
        """From now on the connection is not evicted."""
        peer = self._peers.get(connection.peer)
        if peer is not None and connection in peer.waiting:
            del peer.waiting[connection]
            peer.answering.add(connection)

    def end_answer(self, connection: Evictable) -> None:
        """The connection waits again, since now."""
        peer = self._peers.get(connection.peer)
        if peer is not None and connection in peer.answering:
            peer.answering.discard(connection)
            peer.waiting[connection] = None
