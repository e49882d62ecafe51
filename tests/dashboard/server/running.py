"""A real server of the dashboard on loopback, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientResponse, ClientSession, DummyCookieJar, TCPConnector
from msgspec import Struct

from grove.dashboard.access.caller import Access, OwnAccess
from grove.dashboard.server.application import application
from grove.dashboard.server.board_slot import BoardSlot
from grove.dashboard.server.requests.origins import loopback_hosts
from grove.dashboard.server.serving import listen, serving, tls_context
from grove.dashboard.server.static_files import StaticFile
from grove.kube.server.refusals import Refusals
from tests.dashboard.server.memory_board import Echo, MemoryBoard

FILES = {
    "index.html": StaticFile(b"<!doctype html>", b"", "text/html", "index"),
    "js/main.js": StaticFile(b"x" * 5000, b"packed", "text/javascript", "main"),
}


class Running(Struct, frozen=True):
    """A server that runs."""

    port: int
    board: MemoryBoard
    pages: Echo
    client: ClientSession

    tls: bool = False

    def get(self, path: str, **headers: str) -> asyncio.Future[ClientResponse]:
        """Request a path."""
        return asyncio.ensure_future(self.client._request("GET", self.url(path), headers=headers))

    async def post(self, path: str, **options: Any) -> ClientResponse:
        """Send something to a path."""
        return await self.client.post(self.url(path), **options)

    def url(self, path: str) -> str:
        return f"http{'s' * self.tls}://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def running(
    *namespaces: str, access: Access | None = None, tls: bool = False, ready: bool = True
) -> AsyncIterator[Running]:
    """Serve a board with these namespaces while the body runs."""
    board, pages, refusals = MemoryBoard(*namespaces), Echo(), Refusals("dashboard")
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        hosts = None if tls else loopback_hosts(port)
        own = access or OwnAccess()
        app = application(
            BoardSlot(board if ready else None), own, pages.pages, FILES, refusals, hosts=hosts, tls=tls
        )
        context = tls_context(None) if tls else None
        connector = TCPConnector(ssl=False)
        async with (
            ClientSession(auto_decompress=False, cookie_jar=DummyCookieJar(), connector=connector) as client,
            serving(listener, app, refusals, context),
        ):
            yield Running(port, board, pages, client, tls)


class Events:
    """Reads server-sent events."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    async def next(self, *, name: str = "") -> tuple[str, str]:
        """The name and the data of the next event, or of the next one with a name."""
        fields: dict[str, str] = {}
        while True:
            line = (await self._response.content.readline()).decode()
            if not line:
                raise EOFError
            key, _, value = line.strip().partition(": ")
            if key:
                fields[key] = value
            elif fields.get("event", "retry") == name or not name:
                return fields.get("event", "retry"), fields.get("data", fields.get("retry", ""))
            else:
                fields = {}
