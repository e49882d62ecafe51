"""Reads the log of one container while it arrives, and opens it again if the connection is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from grove import timing
from grove.cli.pod_logs.lines import LineSplitter, LogLine
from grove.cli.pod_logs.sources import LogSource
from grove.kube.client.client import Client
from grove.kube.client.retry import Backoff
from grove.kube.errors import ConnectError, LostReply, NoAnswer, ServerError

_BACKOFF = Backoff(*timing.LOG_BACKOFF)


class LogRange(Struct, frozen=True):
    """Which part of each log is wanted."""

    tail: int | None = None
    since_seconds: int | None = None
    previous: bool = False
    follow: bool = False

    def parameters(self, container: str, last: float) -> dict[str, object]:
        """The parameters of a request. `last`: the time of the line that was read last; 0 if none was."""
        found: dict[str, object] = {"container": container, "timestamps": True, "follow": self.follow}
        if last:
            return found | {"sinceTime": datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")}
        return found | {
            "tailLines": None if self.tail is None else str(self.tail),  # 0 is a value, too
            "sinceSeconds": self.since_seconds,
            "previous": self.previous,
        }


class LogWatcher(Protocol):
    """What a log that is followed needs to know."""

    def runs(self, source: LogSource) -> bool:
        """Whether the container is still in this run, as far as known."""
        ...

    def interrupted(self, why: str) -> None:
        """The log was interrupted, and is opened again."""
        ...


async def read_log(
    client: Client, namespace: str, source: LogSource, wanted: LogRange, watcher: LogWatcher | None = None
) -> AsyncGenerator[list[LogLine]]:
    """The lines of a log, as they arrive. With a `watcher` it is followed: opened again while its container
    runs. Raises ApiError if the server refuses it, and without a watcher any KubeError."""
    last, attempt, rng = 0.0, 0, random.Random()  # noqa: S311 - jitter, not secrets
    while True:
        splitter = LineSplitter()
        parameters = wanted.parameters(source.container, last)
        resumed = last or -1.0  # lines without a time are of time 0
        try:
            async with client.log(
                source.pod, parameters, namespace=namespace, idle_timeout=timing.LOG_IDLE_TIMEOUT
            ) as stream:
                async for piece in stream.chunks():
                    lines = [line for line in splitter.feed(piece) if line.at > resumed]
                    if lines:
                        last, attempt = lines[-1].at or last, 0
                        yield lines
            if rest := [line for line in splitter.end() if line.at > resumed]:
                yield rest
        except (LostReply, ConnectError, ServerError) as problem:
            if watcher is None:
                raise
            if not isinstance(problem, NoAnswer) or problem.seconds < timing.LOG_IDLE_TIMEOUT:
                watcher.interrupted(f"{problem}: trying again")
        # The status of a container that has ended may arrive later than the end of its log. And the server
        # ends a log as usual when its own connection to the kubelet is lost.
        if watcher is None or not watcher.runs(source):
            return
        await asyncio.sleep(_BACKOFF.pause(attempt, rng))
        attempt += 1
        if not watcher.runs(source):
            return
