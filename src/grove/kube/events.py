"""Tells what happened, as Kubernetes events: one per thing that happened, and never in the way of the work.

Two occurrences are the same only if every word is the same, the note included. A repeated one becomes a
series: its count is patched now and then, not each time. What is remembered is bounded; what cannot be told
is counted and let go, since no workload may wait for a message about it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog

from grove.api.intents import Occurrence
from grove.kube import metrics
from grove.kube.client import Client, Object
from grove.kube.errors import ConnectError, KubeError, NotFound, TooManyRequests, namespace_is_ending
from grove.kube.queue import Queue
from grove.kube.resource import EVENTS

log = structlog.get_logger("grove.kube.events")

_NOTE = 1024  # bytes of the longest note that the API takes
_NAME = 253


class _Series:
    """One occurrence and its repetitions."""

    __slots__ = ("count", "first", "last", "last_seen", "name", "told")

    def __init__(self, regarding: str, first: datetime) -> None:
        suffix = f".{uuid.uuid4().hex[:16]}"
        self.name = regarding[: _NAME - len(suffix)] + suffix
        self.first = self.last = first
        self.last_seen = 0.0
        self.count = 0
        self.told = 0


class Recorder:
    """Takes occurrences at any time and tells them in the background, from `start` to `close`."""

    def __init__(
        self,
        client: Client,
        reporter: str,
        instance: str,
        *,
        remembered: int = 4096,
        quiet: float = 360.0,
        interval: float = 30.0,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._reporter = reporter
        self._instance = instance
        self._remembered = remembered
        self._quiet = quiet  # after so many seconds without it, the same occurrence is a new one
        self._interval = interval  # between two tellings of the same series
        self._wall = wall
        self._loop = asyncio.get_running_loop()
        self._series: OrderedDict[Occurrence, _Series] = OrderedDict()
        self._queue: Queue[Occurrence] = Queue("events", self._tell, workers=2)

    def start(self) -> None:
        """Begin to tell."""
        self._queue.start()

    async def close(self, grace: float = 2.0) -> None:
        """Tell what is still untold, for `grace` seconds at most."""
        await self._queue.stop(grace)
        untold = [occurrence for occurrence, series in self._series.items() if series.told < series.count]
        try:
            async with asyncio.timeout(grace):
                for occurrence in untold:
                    await self._tell(occurrence)
        except (TimeoutError, KubeError) as problem:
            log.warning("events left untold", action="close", reason=str(problem) or "no time left")

    def record(self, occurrence: Occurrence) -> None:
        """Note that it happened. Returns at once."""
        now = self._loop.time()
        series = self._series.get(occurrence)
        if series is None or now - series.last_seen > self._quiet:
            series = self._begin(occurrence)
        series.count += 1
        series.last, series.last_seen = self._wall(), now
        self._series.move_to_end(occurrence)
        self._queue.wake(occurrence, now if series.count == 1 else now + self._interval)

    def _begin(self, occurrence: Occurrence) -> _Series:
        self._series.pop(occurrence, None)
        if len(self._series) >= self._remembered:
            oldest, forgotten = self._series.popitem(last=False)
            self._queue.forget(oldest)
            if forgotten.told < forgotten.count:
                metrics.events_dropped_total.inc()
        series = self._series[occurrence] = _Series(occurrence.regarding.name, self._wall())
        return series

    async def _tell(self, occurrence: Occurrence) -> None:
        series = self._series.get(occurrence)
        if series is None or series.told >= series.count:
            return
        count = series.count
        try:
            await self._send(occurrence, series)
        except (ConnectError, TooManyRequests):
            raise  # certainly not told: the queue comes back to it
        except Exception as problem:  # refused, or not to be put into words: neither gets better by waiting
            metrics.events_dropped_total.inc()
            # Where a namespace ends, so do the stories about it: nobody is left to read them.
            say = log.debug if namespace_is_ending(problem) else log.warning
            say("event dropped", key=occurrence.regarding.name, action="tell", reason=str(problem))
        series.told = count

    async def _send(self, occurrence: Occurrence, series: _Series) -> None:
        namespace = occurrence.regarding.namespace or "default"
        if series.told:
            repeated = {"series": {"count": series.count, "lastObservedTime": _micro_time(series.last)}}
            try:
                await self._client.patch(EVENTS, series.name, repeated, as_type=Object, namespace=namespace)
            except NotFound:  # the server forgets events after an hour: begin a new one
                pass
            else:
                return
        body = self._event(occurrence, series, namespace)
        await self._client.create(EVENTS, body, as_type=Object, namespace=namespace)

    def _event(self, occurrence: Occurrence, series: _Series, namespace: str) -> dict[str, Any]:
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": _micro_time(series.first),
            "type": "Warning" if occurrence.warning else "Normal",
            "reason": occurrence.reason,
            "action": occurrence.action,
            "note": _shortened(occurrence.note),
            "regarding": occurrence.regarding,
            "reportingController": occurrence.reporter or self._reporter,
            "reportingInstance": self._instance[:128],
        }
        if occurrence.related is not None:
            event["related"] = occurrence.related
        if series.count > 1:
            event["series"] = {"count": series.count, "lastObservedTime": _micro_time(series.last)}
        return event


def _micro_time(moment: datetime) -> str:
    """metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _shortened(note: str) -> str:
    """At most as many bytes as the API takes, cut between characters."""
    encoded = note.encode()
    return note if len(encoded) <= _NOTE else encoded[: _NOTE - 3].decode(errors="ignore") + "…"
