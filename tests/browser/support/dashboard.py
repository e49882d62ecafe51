"""`grove dashboard` as a process."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cluster.cli.commands import GROVE

PATIENCE = 90.0
_ADDRESS = re.compile(r"https?://\S+/")


class Dashboard:
    """A dashboard that can be stopped and started again on the same port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: Process | None = None
        self._port = "0"
        self.address = ""

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        command = (GROVE, "dashboard", "--no-browser", "--port", self._port, *self._arguments)
        self._process = process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=DEVNULL)
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            found = _ADDRESS.search((await process.stdout.readline()).decode())
        assert found is not None, f"{command} ended with {await process.wait()}"
        self.address = found[0]
        self._port = self.address.rstrip("/").rpartition(":")[2]

    async def stop(self) -> None:
        """Stop it."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            async with asyncio.timeout(PATIENCE):
                await self._process.wait()
        self._process = None


@asynccontextmanager
async def dashboard(*arguments: str) -> AsyncIterator[Dashboard]:
    """A running dashboard."""
    found = Dashboard(*arguments)
    try:
        await found.start()
        yield found
    finally:
        await found.stop()
