"""Runs the real `grove operator` as a process of its own: its log, its endpoints, its exit code."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from grove.kube.cache.cache import Cache, HasMetadata
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from tests.cluster.webhooks.harness import eventually

T = TypeVar("T", bound=HasMetadata)
Line = dict[str, Any]

HERE = {"port": 0, "bindAddress": "127.0.0.1"}
QUICK_ELECTION = {
    "enabled": True,
    "leaseDuration": "20s",
    "renewDeadline": "15s",
    "retryPeriod": "500ms",
}
"""For tests in which a lease expires; long enough that a busy machine does not miss a renewal."""
PATIENT_ELECTION = {**QUICK_ELECTION, "leaseDuration": "1h", "renewDeadline": "30m"}
"""For tests in which no lease expires."""
PATIENCE = 120.0


def configuration(**keys: object) -> dict[str, object]:
    """A configuration with free ports on this machine, and with these keys."""
    return {"server": {"healthProbes": HERE, "metrics": HERE, "webhooks": HERE}, **keys}


class OperatorProcess:
    """A process and all lines that it has logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[Line] = []

    async def hear(self, message: str, **fields: object) -> Line:
        """The first log line, past or future, with this message and these fields."""
        wanted = {"message": message, **fields}.items()
        for line in self.lines:
            if wanted <= line.items():
                return line
        async with asyncio.timeout(PATIENCE):
            while line := await self._next_line():
                if wanted <= line.items():
                    return line
        raise AssertionError(f"ended without logging {dict(wanted)}: {self.lines}")

    async def _next_line(self) -> Line | None:
        assert self.process.stderr is not None
        text = await self.process.stderr.readline()
        if not text:
            return None
        self.lines.append(json.loads(text))
        return self.lines[-1]

    async def get(self, endpoint: str, path: str) -> tuple[int, str]:
        """GET from the endpoint with this configuration key: status and body of the reply."""
        address = await self.hear("listening", key=endpoint)
        url = f"http://{address['host']}:{address['port']}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status, await reply.text()

    async def probe(self, path: str) -> tuple[int, str]:
        return await self.get("server.healthProbes.port", path)

    async def metrics(self) -> dict[str, float]:
        """Each sample of /metrics by its name (and labels)."""
        _, text = await self.get("server.metrics.port", "/metrics")
        samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    async def until_ready(self) -> None:
        """Wait until /readyz replies with ok, polled as a kubelet does."""

        async def asked() -> bool:
            return await self.probe("/readyz") == (200, "ok\n")

        await eventually(asked)

    async def until_metrics(self, **samples: float) -> dict[str, float]:
        """All metrics, once these samples have these values: metrics may be later than the status."""

        async def asked() -> dict[str, float]:
            found = await self.metrics()
            return found if samples.items() <= found.items() else {}

        return await eventually(asked)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """The exit code after the signal, and the seconds that it took."""
        asked = time.monotonic()
        self.process.send_signal(number)
        return await self.ended(), time.monotonic() - asked

    async def ended(self) -> int:
        """The exit code, once the process has ended by itself; `lines` then has its last lines."""
        async with asyncio.timeout(PATIENCE):
            while await self._next_line():
                pass
            return await self.process.wait()


@asynccontextmanager
async def running(
    folder: Path, kubeconfig: Path, config: dict[str, object], *arguments: str, command: str = "operator"
) -> AsyncIterator[OperatorProcess]:
    """`grove operator` with this configuration; killed when the block is left if it still runs."""
    file = folder / f"{command}.json"
    file.write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from grove.cli.main import main; main()",
        *(command, "--config", str(file), "--kubeconfig", str(kubeconfig), *arguments),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield OperatorProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def seen(
    client: Client, cache: Cache[T], condition: Callable[[Cache[T]], bool], patience: float = PATIENCE
) -> None:
    """Watch the cache's kind until the condition holds for the cache."""
    changed = asyncio.Event()
    cache.subscribe(lambda *_: changed.set())
    watching = asyncio.create_task(Reflector(client, cache).run())
    try:
        async with asyncio.timeout(patience):
            await cache.synced.wait()
            while not condition(cache):
                changed.clear()
                await changed.wait()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
