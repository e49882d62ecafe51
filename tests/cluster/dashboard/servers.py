"""A dashboard with sign-in on a real cluster, in this process, whose clock of kept answers a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any

from aiohttp import ClientResponse, ClientSession, DummyCookieJar, TCPConnector
from msgspec import Struct

from grove.dashboard.access.rights_reviewer import RightsReviewer
from grove.dashboard.access.sign_in import SignInAccess
from grove.dashboard.access.token_reviewer import TokenReviewer
from grove.dashboard.board import Board
from grove.dashboard.server.application import application
from grove.dashboard.server.board_slot import BoardSlot
from grove.dashboard.server.page_functions import cluster_pages
from grove.dashboard.server.requests.presented import COOKIE
from grove.dashboard.server.serving import listen, serving, tls_context
from grove.kube.client.client import Client
from grove.kube.server.refusals import Refusals


class Clock:
    """Moves only when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Site(Struct, frozen=True):
    """A dashboard that is served."""

    port: int
    http: ClientSession
    clock: Clock

    async def get(self, path: str, **headers: str) -> ClientResponse:
        """Request a path."""
        return await self.http.get(self.url(path), headers=headers)

    async def json(self, path: str, **headers: str) -> Any:
        """The answer of a path, which exists."""
        answer = await self.get(path, **headers)
        assert answer.status == 200, await answer.text()
        return await answer.json()

    async def post(self, path: str, **options: Any) -> ClientResponse:
        """Send something to a path."""
        return await self.http.post(self.url(path), **options)

    async def sign_in(self, token: str) -> dict[str, str]:
        """The header of a session."""
        answer = await self.post("/api/sign-in", json={"token": token})
        assert answer.status == 204, await answer.text()
        return {"Cookie": f"{COOKIE}={SimpleCookie(answer.headers['Set-Cookie'])[COOKIE].value}"}

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"https://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def site(client: Client, board: Board) -> AsyncIterator[Site]:
    """Serve a board to users who sign in while the body runs."""
    clock, refusals = Clock(), Refusals("dashboard")
    rights = RightsReviewer(client, board.namespaces, clock)
    access = SignInAccess(TokenReviewer(client, clock), rights, clock)
    app = application(BoardSlot(board), access, cluster_pages(), {}, refusals, hosts=None, tls=True)
    connector = TCPConnector(ssl=False, limit=0)
    with listen("127.0.0.1", 0) as listener:
        async with (
            ClientSession(cookie_jar=DummyCookieJar(), connector=connector) as http,
            serving(listener, app, refusals, tls_context(None)),
        ):
            yield Site(listener.getsockname()[1], http, clock)
