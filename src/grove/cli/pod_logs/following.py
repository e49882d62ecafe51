"""Follows the logs of all pods of an object, also of those that come later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.sources import ContainerChoice, LogPod, LogSource, check_streams, running_sources
from grove.cli.pod_logs.streams import LogRange, read_log
from grove.explanation.watching import watching
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.errors import BadRequest, Forbidden, KubeError, NotFound


class Batch(Struct, frozen=True):
    """Lines of a log; at its end there are none, and `problem` says why it ended early."""

    source: LogSource
    lines: list[LogLine]
    problem: KubeError | None = None


class LogFollower:
    """Reads one log for each run of a container, until all pods have ended or the object is gone."""

    def __init__(
        self,
        client: Client,
        pods: Cache[LogPod],
        about: Cache[Any],
        choice: ContainerChoice,
        wanted: LogRange,
        limit: int,
        notify: Callable[[str], None],
    ) -> None:
        self._client, self._pods, self._about = client, pods, about
        self._choice, self._wanted, self._limit, self._notify = choice, wanted, limit, notify
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue(timing.LOG_BATCHES)
        self._known: set[LogSource] = set()
        self._open: dict[LogSource, asyncio.Task[None]] = {}
        for cache in (pods, about):
            cache.subscribe(lambda _old, _new: self._wake())

    async def batches(self) -> AsyncIterator[Batch]:
        """Lines as they arrive. Raises ConfigError if there are more logs than permitted, and Forbidden."""
        async with watching(self._client, (self._pods, self._about)):
            self._choice.check(self._pods)
            try:
                async for batch in self._arriving():
                    yield batch
            finally:
                for task in self._open.values():
                    task.cancel()
                await asyncio.gather(*self._open.values(), return_exceptions=True)

    async def _arriving(self) -> AsyncIterator[Batch]:
        wanted = self._wanted
        while True:
            self._open_new(wanted)
            wanted = LogRange(follow=True)  # of logs that begin later, everything is new
            if not self._open and self._has_ended():
                return
            batch = await self._batches.get()
            if batch is None:
                continue
            if not batch.lines:
                del self._open[batch.source]
            if isinstance(batch.problem, Forbidden):
                raise batch.problem
            yield batch

    def _wake(self) -> None:
        with suppress(asyncio.QueueFull):  # then there is a batch, which wakes as well
            self._batches.put_nowait(None)

    def _open_new(self, wanted: LogRange) -> None:
        pods = sorted(self._pods, key=lambda each: each.metadata.name)
        found = [source for pod in pods for source in self._choice.sources(pod)]
        new = [source for source in found if source not in self._known]
        check_streams(len(self._open) + len(new), self._limit)
        for source in new:
            self._known.add(source)
            self._open[source] = asyncio.create_task(self._read(source, replace(wanted, follow=True)))

    def runs(self, source: LogSource) -> bool:
        """Whether the container is still in this run, as far as known."""
        pod = self._pods.get(self._pods.namespace or "", source.pod)
        return len(self._about) > 0 and pod is not None and not pod.ended and source in running_sources(pod)

    def interrupted(self, why: str) -> None:
        """Say that a log was interrupted."""
        self._notify(why)

    def _has_ended(self) -> bool:
        """Whether no more logs are to be expected."""
        return not len(self._about) or (len(self._pods) > 0 and all(pod.ended for pod in self._pods))

    async def _read(self, source: LogSource, wanted: LogRange) -> None:
        problem: KubeError | None = None
        try:
            async for lines in read_log(self._client, self._pods.namespace or "", source, wanted, self):
                await self._batches.put(Batch(source, lines))
        except (NotFound, BadRequest):
            pass  # the container was removed meanwhile
        except KubeError as error:
            problem = error
        await self._batches.put(Batch(source, [], problem))
