"""Runs `grove dashboard` as the chart does, with the account of the chart, and reads it as a user."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, CookieJar, TCPConnector
from msgspec import Struct

from grove.cli import main
from tests.chart import DASHBOARD, Body, one, render
from tests.cluster.chart.test_rendering import POD, at

HERE = {"--bind=0.0.0.0": "--bind=127.0.0.1", "--port=8443": "--port=0"}
PATIENCE = 60.0


class Dashboard(Struct, frozen=True):
    """A process that serves."""

    address: str

    @asynccontextmanager
    async def user(self, token: str) -> AsyncIterator[User]:
        """A user who signs in with a token."""
        jar, connector = CookieJar(unsafe=True), TCPConnector(ssl=False)
        async with ClientSession(self.address, cookie_jar=jar, connector=connector) as session:
            user = User(session)
            async with session.post("/api/sign-in", json={"token": token}) as reply:
                assert reply.status == 204, await reply.text()
            yield user

    async def status(self, path: str) -> int:
        """The status of a request without sign-in."""
        connector = TCPConnector(ssl=False)
        async with ClientSession(self.address, connector=connector) as session, session.get(path) as reply:
            return reply.status


class User(Struct, frozen=True):
    """A user who has signed in."""

    session: ClientSession

    async def read(self, path: str, **parameters: str) -> Body:
        """An answer of the API."""
        status, text = await self.ask(path, **parameters)
        assert status == 200, text
        found: Body = json.loads(text)
        return found

    async def ask(self, path: str, **parameters: str) -> tuple[int, str]:
        """The status and the text of an answer."""
        async with self.session.get(path, params=parameters) as reply:
            return reply.status, await reply.text()


def arguments(values: dict[str, Any]) -> list[str]:
    """The arguments of the container, with an address of this machine."""
    container = at(one(render(values), "Deployment", DASHBOARD), f"{POD}.containers.0")
    return [HERE.get(each, each) for each in container["args"]]


@asynccontextmanager
async def dashboard_of(values: dict[str, Any], kubeconfig: Path) -> AsyncIterator[Dashboard]:
    """The dashboard of the chart with these values, until the block is left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"from {main.__name__} import main; main()", *arguments(values)),
        *("--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        found = re.search(r"https://\S+(?=/ )", line)
        assert found, line
        yield Dashboard(found.group())
    finally:
        process.terminate()
        assert await process.wait() == 0
