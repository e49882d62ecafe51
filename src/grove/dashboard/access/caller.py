"""The sender of a request: what it presents, and what it may see."""

from __future__ import annotations

import asyncio
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from grove.dashboard.rights import Rights
from grove.kube.client.resource import Resource


class Presented(Struct, frozen=True):
    """What a request has to identify its sender. `peer` is an address without the port."""

    peer: str
    session: str = ""
    bearer: str = ""


class Caller(Struct, frozen=True):
    """A sender whose rights are known. Limits apply to its `key`: the user, however many sessions they have,
    or the address."""

    key: str
    rights: Rights
    user: str = ""


class SessionAccess(Protocol):
    """Begins and ends sessions."""

    async def sign_in(self, token: str, peer: str) -> str:
        """The identifier of a new session. Raises PageError (401, 429 or 503)."""
        ...

    def sign_out(self, session: str) -> None:
        """End a session, if there is one."""
        ...


class Access(Protocol):
    """Decides what the sender of a request may see."""

    @property
    def sessions(self) -> SessionAccess | None:
        """By which users sign in; None: they do not."""
        ...

    async def caller(self, presented: Presented) -> Caller:
        """The sender with its present rights. Raises PageError (401, 429 or 503)."""
        ...

    async def may_list(self, presented: Presented, resource: Resource, namespace: str) -> bool:
        """Whether the sender may list a kind in a namespace. Raises PageError (401, 429 or 503)."""
        ...

    def ended(self, presented: Presented) -> asyncio.Event:
        """Set when the session of the sender ends."""
        ...


class OwnAccess:
    """Without sign-in: each sender is the user of the kubeconfig, who has started the server."""

    sessions: SessionAccess | None = None

    def __init__(self, rights: Rights | None = None) -> None:
        self._rights = replace(rights or Rights(), own=True)
        self._never_ends = asyncio.Event()

    async def caller(self, presented: Presented) -> Caller:
        """The user of the kubeconfig."""
        return Caller(presented.peer, self._rights)

    async def may_list(self, presented: Presented, resource: Resource, namespace: str) -> bool:  # noqa: ARG002
        """The API server refuses what they may not read."""
        return True

    def ended(self, presented: Presented) -> asyncio.Event:  # noqa: ARG002 - part of Access
        """Never set: there are no sessions."""
        return self._never_ends
