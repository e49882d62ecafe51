"""Access with sign-in: sessions and bearer tokens, whose users the API server reviews."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from grove import timing
from grove.dashboard.access.caller import Caller, Presented, SessionAccess
from grove.dashboard.access.errors import NotSignedIn, TooMany
from grove.dashboard.access.rate_limiter import Rate, RateLimiter
from grove.dashboard.access.rights_reviewer import RightsReviewer
from grove.dashboard.access.sessions import Sessions
from grove.dashboard.access.token_reviewer import TokenReviewer
from grove.dashboard.rights import User
from grove.kube.client.resource import Resource

_INVALID = "the cluster does not accept this token: create another one, for example with kubectl create token"
_OVER = "the session has ended: sign in again"


class SignInAccess:
    """Each sender shows the cookie of a session, or a token of the cluster."""

    def __init__(
        self, tokens: TokenReviewer, rights: RightsReviewer, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens, self._rights = tokens, rights
        self._sessions = Sessions(clock)
        self._attempts = RateLimiter(Rate(*timing.SIGN_IN_RATE), clock)

    @property
    def sessions(self) -> SessionAccess:
        """Users sign in here."""
        return self

    async def caller(self, presented: Presented) -> Caller:
        """The user of the token or of the session, with their present rights."""
        user = await self._sender(presented)
        return Caller(user.name, await self._rights.rights(user), user.name)

    async def may_list(self, presented: Presented, resource: Resource, namespace: str) -> bool:
        """What the API server answers about the user."""
        user = await self._sender(presented)
        return await self._rights.may_list(user, resource, namespace)

    async def _sender(self, presented: Presented) -> User:
        """The user of the token or of the session."""
        if presented.bearer:
            if not self._tokens.knows(presented.bearer):
                self._count_attempt(presented.peer)
            return await self._user(presented.bearer)
        if presented.session:
            return await self._session_user(presented.session)
        raise NotSignedIn

    def ended(self, presented: Presented) -> asyncio.Event:
        """Set when the session ends; the token of a client has none."""
        event = asyncio.Event()
        if presented.bearer:
            return event
        session = self._sessions.find(presented.session)
        if session is None:
            event.set()
            return event
        return session.ended

    async def sign_in(self, token: str, peer: str) -> str:
        """Begin a session with a valid token."""
        self._count_attempt(peer)
        return self._sessions.begin(token, await self._user(token))

    def sign_out(self, session: str) -> None:
        """End a session."""
        self._sessions.end(session)

    def _count_attempt(self, peer: str) -> None:
        """Each token that must be reviewed is an attempt to sign in."""
        if seconds := self._attempts.take(peer):
            raise TooMany("attempts to sign in", seconds)

    async def _user(self, token: str) -> User:
        user = await self._tokens.user(token)
        if user is None:
            raise NotSignedIn(_INVALID)
        return user

    async def _session_user(self, identifier: str) -> User:
        session = self._sessions.find(identifier)
        if session is None:
            raise NotSignedIn(_OVER)
        user = await self._tokens.user(session.token)
        if user is None:  # revoked or expired
            self._sessions.end(identifier)
            raise NotSignedIn(_OVER)
        return user
