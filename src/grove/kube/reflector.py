"""Keeps a cache in step with the server through whatever happens to the connection.

One stream does it all where the server can: it sends what exists, a bookmark that says "that was all", then
what changes. A cut or ended stream is resumed from the last version that was told, without a new list; only
410 (the server forgot that version) starts over. A resource that is not served is waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Generic, Protocol

import structlog

from grove.kube import metrics, watch
from grove.kube.cache import Cache, T
from grove.kube.client import Client
from grove.kube.errors import (
    ApiError,
    BadRequest,
    ConnectError,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
)
from grove.kube.register import Key
from grove.kube.resource import Resource
from grove.kube.retry import Backoff
from grove.kube.sharing import share
from grove.kube.undecodable import Undecodable

log = structlog.get_logger("grove.kube")

# The server sends bookmarks every minute; a stream that is silent for longer is a dead connection.
SILENCE = 150.0
# A server that does not know streaming lists may take the request for a plain watch and never say "all".
SILENCE_BEFORE_SYNC = 20.0
LIFETIME = (300, 600)
# What changes only when a person acts is asked for patiently; but that person sits and waits for us.
PATIENT = Backoff(first=0.5, most=15.0)
# A failure of our own is likely to come again, and a list of everything is not free.
AFTER_FAILURE = Backoff(first=1.0, most=60.0)
_CALL_FOR_HANDS = (ConnectError, Forbidden, Unauthorized)  # what may take a person to mend


class Arrivals(Protocol):
    """Knows when a resource begins to be served (see `grove.kube.arrivals`)."""

    async def wait(self, resource: Resource, at_most: float) -> bool:
        """True when it arrived, False after `at_most` seconds."""
        ...


class Reflector(Generic[T]):
    """Fills one cache. `run()` returns only by cancellation."""

    def __init__(
        self,
        client: Client,
        cache: Cache[T],
        *,
        arrivals: Arrivals | None = None,
        backoff: Backoff | None = None,
        seed: int | None = None,
        streaming: bool = True,
        optional: bool = False,
    ) -> None:
        self._client = client
        self._cache = cache
        self._arrivals = arrivals
        self._backoff = backoff or Backoff(first=0.1, most=10.0)
        self._rng = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._streaming = streaming
        self._optional = optional
        self._decoder = watch.EventDecoder(cache.as_type, cache.resource)
        self._version = ""
        self._failures = 0  # passes since the server last told something
        self._repeated = 0
        self._said = ""  # what was wrong since then: a trouble that lasts is told once

    @property
    def resource_version(self) -> str:
        """The version from which the watch would resume; empty before the first sync."""
        return self._version

    async def run(self) -> None:
        """List and watch, for ever."""
        while True:
            reason = await self._pass()
            metrics.watch_restarts_total.labels(self._cache.resource.label, reason).inc()

    async def _pass(self) -> str:
        """One stream from its beginning to its end; says why it ended."""
        self._failures += 1
        try:
            if not self._version and not self._streaming:
                await self._list()
            await self._watch()
        except Gone as error:
            self._version = ""
            return await self._rest("expired", error)
        except NotFound as error:
            return await self._absent(error)
        except (Invalid, BadRequest) as error:
            return await self._refused(error)
        except TimeoutError:
            return await self._refused(None)
        except watch.LineTooLong as error:
            return await self._failed(error)
        except KubeError as error:
            return await self._rest(type(error).__name__, error)
        except Exception as bug:
            return await self._failed(bug)
        self._repeated = 0
        return "ended" if self._failures == 0 and self._version else await self._rest("ended early")

    async def _list(self) -> None:
        cache = self._cache
        listing = await self._client.list(
            cache.resource,
            as_type=cache.as_type,
            namespace=cache.namespace,
            labels=cache.labels,
            fields=cache.fields,
        )
        cache.replace(listing.items, listing.resource_version, listing.undecodable)
        self._version = listing.resource_version

    async def _watch(self) -> None:
        cache = self._cache
        initial = _Initial[T]()
        async with (
            self._client.stream(
                cache.resource, self._parameters(), namespace=cache.namespace, silence=SILENCE
            ) as stream,
            asyncio.timeout(None) as patience,
        ):
            self._limit(patience)
            async for lines in watch.batches(stream.chunks()):
                self._failures, self._said = 0, ""
                self._take_in(lines, initial)
                self._limit(patience)

    def _limit(self, patience: asyncio.Timeout) -> None:
        """Until the server has said "all", silence means that it will never say it."""
        now = asyncio.get_running_loop().time()
        patience.reschedule(None if self._version else now + SILENCE_BEFORE_SYNC)

    def _parameters(self) -> Mapping[str, object]:
        common = {
            "allowWatchBookmarks": True,
            "labelSelector": self._cache.labels,
            "fieldSelector": self._cache.fields,
            "timeoutSeconds": self._rng.randint(*LIFETIME),
        }
        if self._version:
            return common | {"resourceVersion": self._version}
        return common | {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}

    def _take_in(self, lines: list[bytes], initial: _Initial[T]) -> None:
        for line in lines:
            event = self._decoder.decode(line)
            if isinstance(event, watch.Bookmark):
                self._pass_bookmark(event, initial)
            elif not self._version:
                initial.collect(event)
            elif isinstance(event, watch.Event):
                self._cache.apply_event(event.type, event.object)
                self._version = event.object.metadata.resource_version
            else:
                self._cache.apply_undecodable(event.type, event.object)
                self._version = event.object.metadata.resource_version or self._version
        metrics.watch_events_total.labels(self._cache.resource.label).inc(len(lines))

    def _pass_bookmark(self, bookmark: watch.Bookmark, initial: _Initial[T]) -> None:
        if self._version:
            self._cache.advance(bookmark.resource_version)
            self._version = bookmark.resource_version
        elif bookmark.initial_end:
            self._cache.replace(
                initial.objects.values(), bookmark.resource_version, initial.undecodable.values()
            )
            self._version = bookmark.resource_version
            initial.clear()
            log.info(
                "synced",
                key=self._cache.resource.label,
                action="list",
                reason="start",
                objects=len(self._cache),
            )

    async def _refused(self, error: KubeError | None) -> str:
        """The server may know no streaming lists; then it is asked for pages from now on."""
        if self._version or not self._streaming:
            return await self._rest("refused", error)
        self._streaming = False
        return "streaming refused"

    async def _failed(self, problem: Exception) -> str:
        """Handles what is likely to happen again, such as a bug: the other watches go on, and this one
        is begun again, later each time. After a bug the cache may be incomplete, so everything is listed."""
        label, bug = self._cache.resource.label, not isinstance(problem, KubeError)
        if bug:
            self._version = ""
        metrics.watch_failures_total.labels(label).inc()
        pause = AFTER_FAILURE.pause(self._repeated, self._rng)
        self._repeated += 1
        reason, trace = str(problem), problem if bug else None
        log.error("watch failed", key=label, action="rewatch", reason=reason, pause=pause, exc_info=trace)
        await asyncio.sleep(pause)
        return type(problem).__name__

    async def _rest(self, reason: str, error: KubeError | None = None) -> str:
        """Pause before the next try; the server's own wish counts more than ours."""
        backoff = PATIENT if isinstance(error, Forbidden) else self._backoff
        asked = error.retry_after if isinstance(error, ApiError) else None
        pause = max(asked or 0.0, backoff.pause(max(self._failures - 1, 0), self._rng))
        why = str(error or reason)
        if why != self._said:
            tell = log.warning if isinstance(error, _CALL_FOR_HANDS) else log.info
            tell(
                "watch interrupted", key=self._cache.resource.label, action="rewatch", reason=why, pause=pause
            )
            self._said = why
        await asyncio.sleep(pause)
        return reason

    async def _absent(self, error: NotFound) -> str:
        """The server does not serve the resource: wait for its CRD to come, or look again later."""
        if self._cache.synced.is_set() or not self._cache.settled.is_set():
            tell = log.info if self._optional else log.warning
            tell("not served", key=self._cache.resource.label, action="wait", reason=str(error))
        self._version = ""
        self._cache.clear()
        pause = PATIENT.pause(self._failures - 1, self._rng)
        if self._arrivals is None:
            await asyncio.sleep(pause)
        elif await self._arrivals.wait(self._cache.resource, pause):
            self._failures = 0
        return "not served"


class _Initial(Generic[T]):
    """What exists at the start; changes may come in between, before the server says "all"."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self.undecodable: dict[Key, Undecodable] = {}

    def collect(self, event: watch.Event[T] | watch.Skipped) -> None:
        """Keep the newest state of an object. Already shared, or the start would be when most memory is
        needed."""
        metadata = event.object.metadata
        key = (metadata.namespace, metadata.name)
        self.objects.pop(key, None)
        self.undecodable.pop(key, None)
        if event.type == "DELETED":
            return
        if isinstance(event, watch.Skipped):
            self.undecodable[key] = event.object
        else:
            self.objects[key] = share(event.object)

    def clear(self) -> None:
        """Everything was taken in."""
        self.objects.clear()
        self.undecodable.clear()
