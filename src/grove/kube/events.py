"""Publishes Kubernetes events in the background, without delaying any reconcile.

Two events are the same only if all fields are equal, the note included. A repeated event becomes a series,
whose count is patched every `interval`, not for each repetition. The number of remembered events is bounded.
An event that cannot be published is counted and dropped, since no workload may wait for it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from grove import timing
from grove.api.intents import EventRecord
from grove.kube import metrics
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import EVENTS
from grove.kube.errors import ConnectError, KubeError, NotFound, TooManyRequests, is_namespace_terminating
from grove.kube.workqueue.queue import WorkQueue
from grove.logger import get_logger

log = get_logger("grove.kube.events")

_MAX_NOTE_BYTES = 1024  # of the longest note that the API accepts
_MAX_NAME_LENGTH = 253


class _Series:
    """One event and its repetitions."""

    __slots__ = ("count", "first", "last", "last_seen", "name", "published")

    def __init__(self, regarding: str, first: datetime) -> None:
        suffix = f".{uuid.uuid4().hex[:16]}"
        self.name = regarding[: _MAX_NAME_LENGTH - len(suffix)] + suffix
        self.first = self.last = first
        self.last_seen = 0.0
        self.count = 0
        self.published = 0


class EventRecorder:
    """Accepts events at any time and publishes them in the background, from `start` to `close`."""

    def __init__(
        self,
        client: Client,
        reporter: str,
        instance: str,
        *,
        max_series: int = 4096,
        series_timeout: float = timing.EVENT_SERIES_TIMEOUT,
        interval: float = timing.EVENT_SERIES_INTERVAL,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._reporter = reporter
        self._instance = instance
        self._max_series = max_series
        self._series_timeout = series_timeout  # seconds after which a repetition starts a new series
        self._interval = interval  # seconds between two patches of the same series
        self._wall_clock = wall_clock
        self._loop = asyncio.get_running_loop()
        self._series: OrderedDict[EventRecord, _Series] = OrderedDict()
        self._queue: WorkQueue[EventRecord] = WorkQueue("events", self._publish, workers=timing.EVENT_WORKERS)

    def start(self) -> None:
        """Start to publish."""
        self._queue.start()

    async def close(self, grace: float = timing.EVENT_CLOSE_TIMEOUT) -> None:
        """Publish what is still unpublished, for `grace` seconds at most."""
        await self._queue.stop(grace)
        unpublished = [
            event_record for event_record, series in self._series.items() if series.published < series.count
        ]
        try:
            async with asyncio.timeout(grace):
                for event_record in unpublished:
                    await self._publish(event_record)
        except (TimeoutError, KubeError) as problem:
            log.warning("events left unpublished", action="close", reason=str(problem) or "no time left")

    def record(self, event_record: EventRecord) -> None:
        """Accept an event, to be published later. Returns at once."""
        now = self._loop.time()
        series = self._series.get(event_record)
        if series is None or now - series.last_seen > self._series_timeout:
            series = self._begin_series(event_record)
        series.count += 1
        series.last, series.last_seen = self._wall_clock(), now
        self._series.move_to_end(event_record)
        self._queue.enqueue(event_record, now if series.count == 1 else now + self._interval)

    def _begin_series(self, event_record: EventRecord) -> _Series:
        self._series.pop(event_record, None)
        if len(self._series) >= self._max_series:
            oldest, forgotten = self._series.popitem(last=False)
            self._queue.forget(oldest)
            if forgotten.published < forgotten.count:
                metrics.events_dropped_total.inc()
        series = self._series[event_record] = _Series(event_record.regarding.name, self._wall_clock())
        return series

    async def _publish(self, event_record: EventRecord) -> None:
        series = self._series.get(event_record)
        if series is None or series.published >= series.count:
            return
        count = series.count
        try:
            await self._send(event_record, series)
        except (ConnectError, TooManyRequests):
            raise  # certainly not published: the queue retries it
        except Exception as problem:  # rejected, or it cannot be encoded: a retry would not help
            metrics.events_dropped_total.inc()
            # A terminating namespace accepts no events, which is expected and needs no warning.
            log_at = log.debug if is_namespace_terminating(problem) else log.warning
            log_at("event dropped", key=event_record.regarding.name, action="publish", reason=str(problem))
        series.published = count

    async def _send(self, event_record: EventRecord, series: _Series) -> None:
        namespace = event_record.regarding.namespace or "default"
        if series.published:
            repeated = {"series": {"count": series.count, "lastObservedTime": _micro_time(series.last)}}
            try:
                await self._client.patch(EVENTS, series.name, repeated, as_type=Object, namespace=namespace)
            except NotFound:  # the server deletes events after an hour: create a new one
                pass
            else:
                return
        body = self._event(event_record, series, namespace)
        await self._client.create(EVENTS, body, as_type=Object, namespace=namespace)

    def _event(self, event_record: EventRecord, series: _Series, namespace: str) -> dict[str, Any]:
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": _micro_time(series.first),
            "type": "Warning" if event_record.warning else "Normal",
            "reason": event_record.reason,
            "action": event_record.action,
            "note": _truncated(event_record.note),
            "regarding": event_record.regarding,
            "reportingController": event_record.reporter or self._reporter,
            "reportingInstance": self._instance[:128],
        }
        if series.count > 1:
            event["series"] = {"count": series.count, "lastObservedTime": _micro_time(series.last)}
        return event


def _micro_time(moment: datetime) -> str:
    """metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _truncated(note: str) -> str:
    """The note, shortened between two characters to the number of bytes that the API accepts."""
    encoded = note.encode()
    return (
        note
        if len(encoded) <= _MAX_NOTE_BYTES
        else encoded[: _MAX_NOTE_BYTES - 3].decode(errors="ignore") + "…"
    )
