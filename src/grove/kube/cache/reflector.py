"""Lists and watches one resource into its cache, and recovers from every failure of the connection.

Where the server supports streaming lists, one stream does it all: it sends the existing objects, a bookmark
that ends them, then the changes. A broken or ended stream is resumed from the last version that it sent,
without a new list; only 410 (the server no longer has that version) starts over. A resource that is not
served is waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Generic, Protocol

from grove import timing
from grove.kube import metrics
from grove.kube.cache.store import Decoded, Kept, Store
from grove.kube.client import watch
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.client.retry import Backoff
from grove.kube.client.undecodable import Undecodable
from grove.kube.errors import (
    ApiError,
    BadRequest,
    ConnectError,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    KubeError,
    LostReply,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from grove.logger import get_logger

log = get_logger("grove.kube")

SLOW_BACKOFF = Backoff(*timing.INTERVENTION_BACKOFF)
AFTER_FAILURE = Backoff(*timing.BUG_BACKOFF)
_NEEDS_INTERVENTION = (ConnectError, Forbidden, Unauthorized)  # may need an action of an administrator


class CrdWaiter(Protocol):
    """Waits until a resource is served (see `grove.kube.cache.crd_watch`)."""

    async def wait(self, resource: Resource, timeout: float) -> bool:
        """True when it is served, False after `timeout` seconds."""
        ...


class Reflector(Generic[Decoded, Kept]):
    """Fills one cache. `run()` returns only by cancellation."""

    def __init__(
        self,
        client: Client,
        cache: Store[Decoded, Kept],
        *,
        crd_watch: CrdWaiter | None = None,
        backoff: Backoff | None = None,
        seed: int | None = None,
        streaming: bool = True,
        optional: bool = False,
        on_disconnect: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._crd_watch = crd_watch
        self._backoff = backoff or Backoff(*timing.REFLECTOR_BACKOFF)
        self._rng = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._streaming = streaming
        self._optional = optional
        self._on_disconnect = on_disconnect
        self._decoder = watch.EventDecoder(cache.as_type, cache.resource)
        self._version = ""
        self._failures = 0  # attempts since the server last sent something
        self._repeated = 0
        self._problem = ""
        self._forbidden = False  # whether the problem is a missing permission
        self._failed = False  # whether nothing was applied since a failure that is likely to happen again
        self._last_reason = ""  # of the last failure since then: the same reason is logged once

    @property
    def resource_version(self) -> str:
        """The version from which the watch would resume; empty before the first sync."""
        return self._version

    @property
    def problem(self) -> str:
        """Why the watch is interrupted at present, such as a missing RBAC permission; empty if it is not."""
        return self._problem

    @property
    def forbidden(self) -> bool:
        """Whether the watch is interrupted by a missing RBAC permission."""
        return self._forbidden and bool(self._problem)

    async def run(self) -> None:
        """List and watch, until cancelled."""
        while True:
            reason = await self._list_and_watch()
            metrics.watch_restarts_total.labels(self._cache.resource.label, reason).inc()

    async def _list_and_watch(self) -> str:
        """One stream from its beginning to its end; returns why it ended."""
        self._failures += 1
        try:
            if not self._version and not self._streaming:
                await self._list()
            await self._watch()
        except Gone as error:
            self._version = ""
            return await self._pause("expired", error)
        except NotFound as error:
            return await self._wait_until_served(error)
        except (Invalid, BadRequest) as error:
            return await self._fall_back_to_list(error)
        except TimeoutError:
            return await self._fall_back_to_list(None)
        except watch.LineTooLong as error:
            return await self._pause_after_bug(error)
        except KubeError as error:
            return await self._pause(type(error).__name__, error)
        except Exception as bug:
            return await self._pause_after_bug(bug)
        self._repeated = 0
        return "ended" if self._failures == 0 and self._version else await self._pause("ended early")

    async def _list(self) -> None:
        cache = self._cache
        listing = await self._client.list(
            cache.resource,
            as_type=cache.as_type,
            namespace=cache.namespace,
            labels=cache.labels,
            fields=cache.fields,
        )
        listed = map(cache.compact, listing.items)
        cache.replace(listed, listing.resource_version, listing.undecodable)
        self._version = listing.resource_version

    async def _watch(self) -> None:
        cache = self._cache
        initial = _InitialList(cache)
        async with (
            self._client.stream(
                cache.resource,
                self._parameters(),
                namespace=cache.namespace,
                idle_timeout=timing.WATCH_IDLE_TIMEOUT,
            ) as stream,
            asyncio.timeout(None) as idle_timeout,
        ):
            self._reset_idle_timeout(idle_timeout)
            if self._version and not self._failed:
                self._problem = ""
            async for lines in watch.line_batches(stream.chunks()):
                self._failures, self._last_reason = 0, ""
                self._apply_lines(lines, initial)
                if self._version:
                    self._problem, self._failed = "", False
                self._reset_idle_timeout(idle_timeout)

    def _reset_idle_timeout(self, idle_timeout: asyncio.Timeout) -> None:
        """Before the end bookmark, silence means that the server will never send it."""
        now = asyncio.get_running_loop().time()
        idle_timeout.reschedule(None if self._version else now + timing.LIST_IDLE_TIMEOUT)

    def _parameters(self) -> Mapping[str, object]:
        common = {
            "allowWatchBookmarks": True,
            "labelSelector": self._cache.labels,
            "fieldSelector": self._cache.fields,
            "timeoutSeconds": self._rng.randint(*timing.WATCH_LIFETIME),
        }
        if self._version:
            return common | {"resourceVersion": self._version}
        return common | {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}

    def _apply_lines(self, lines: list[bytes], initial: _InitialList[Decoded, Kept]) -> None:
        for line in lines:
            event = self._decoder.decode(line)
            if isinstance(event, watch.Bookmark):
                self._apply_bookmark(event, initial)
            elif not self._version:
                initial.collect(event)
            elif isinstance(event, watch.Event):
                self._cache.apply_event(event.type, event.object)
                self._version = event.object.metadata.resource_version
            else:
                self._cache.apply_undecodable(event.type, event.object)
                self._version = event.object.metadata.resource_version or self._version
        metrics.watch_events_total.labels(self._cache.resource.label).inc(len(lines))

    def _apply_bookmark(self, bookmark: watch.Bookmark, initial: _InitialList[Decoded, Kept]) -> None:
        if self._version:
            self._cache.apply_bookmark(bookmark.resource_version)
            self._version = bookmark.resource_version
        elif bookmark.initial_end:
            self._cache.replace(initial.objects(), bookmark.resource_version, initial.undecodable.values())
            self._version = bookmark.resource_version
            initial.clear()
            log.info(
                "synced",
                key=self._cache.resource.label,
                action="list",
                reason="start",
                objects=len(self._cache),
            )

    async def _fall_back_to_list(self, error: KubeError | None) -> str:
        """The server may not support streaming lists: from now on the list is read in pages."""
        if self._version or not self._streaming:
            return await self._pause("refused", error)
        self._streaming = False
        return "streaming refused"

    async def _pause_after_bug(self, problem: Exception) -> str:
        """Pause after a failure that is likely to happen again, such as a bug: the other watches go on, and
        this one is started again with a growing back-off. After a bug the cache may be incomplete, so
        everything is listed again."""
        label, bug = self._cache.resource.label, not isinstance(problem, KubeError)
        if bug:
            self._version = ""
        metrics.watch_failures_total.labels(label).inc()
        pause = AFTER_FAILURE.pause(self._repeated, self._rng)
        self._repeated += 1
        reason, trace = str(problem), problem if bug else None
        self._problem, self._forbidden, self._failed = reason or type(problem).__name__, False, True
        log.error("watch failed", key=label, action="rewatch", reason=reason, pause=pause, exc_info=trace)
        await asyncio.sleep(pause)
        return type(problem).__name__

    async def _pause(self, reason: str, error: KubeError | None = None) -> str:
        """Pause before the next attempt: for the back-off, or longer if the server asks for it."""
        if isinstance(error, ConnectError | LostReply):
            self._on_disconnect()
        elif isinstance(error, InternalError | TooManyRequests) and not self._version:
            self._cache.mark_unlistable(str(error))
        backoff = SLOW_BACKOFF if isinstance(error, Forbidden) else self._backoff
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        pause = max(retry_after or 0.0, backoff.pause(max(self._failures - 1, 0), self._rng))
        why = self._problem = str(error or reason)
        self._forbidden = isinstance(error, Forbidden)
        if why != self._last_reason:
            log_at = log.warning if isinstance(error, _NEEDS_INTERVENTION) else log.info
            log_at(
                "watch interrupted", key=self._cache.resource.label, action="rewatch", reason=why, pause=pause
            )
            self._last_reason = why
        await asyncio.sleep(pause)
        return reason

    async def _wait_until_served(self, error: NotFound) -> str:
        """The server does not serve the resource: wait for its CRD, or try again later."""
        if self._cache.synced.is_set() or not self._cache.synced_or_absent.is_set():
            log_at = log.info if self._optional else log.warning
            log_at("not served", key=self._cache.resource.label, action="wait", reason=str(error))
        self._version = self._problem = ""
        self._cache.clear()
        pause = SLOW_BACKOFF.pause(self._failures - 1, self._rng)
        if self._crd_watch is None:
            await asyncio.sleep(pause)
        elif await self._crd_watch.wait(self._cache.resource, pause):
            self._failures = 0
        return "not served"


class _InitialList(Generic[Decoded, Kept]):
    """The objects that exist at the start, up to the end bookmark; changes may come in between."""

    def __init__(self, cache: Store[Decoded, Kept]) -> None:
        self._cache = cache
        self._by_namespace: dict[str, dict[str, Kept]] = {}  # no key for each object: there may be very many
        self.undecodable: dict[tuple[str, str], Undecodable] = {}

    def collect(self, event: watch.Event[Decoded] | watch.SkippedEvent) -> None:
        """Keep the newest state of an object. It is compacted here already, or the start would need the most
        memory."""
        metadata = event.object.metadata
        key = (metadata.namespace, metadata.name)
        objects = self._by_namespace.setdefault(metadata.namespace, {})
        objects.pop(metadata.name, None)
        self.undecodable.pop(key, None)
        if event.type == "DELETED":
            return
        if isinstance(event, watch.SkippedEvent):
            self.undecodable[key] = event.object
        else:
            objects[metadata.name] = self._cache.compact(event.object)

    def objects(self) -> Iterator[Kept]:
        """The objects that exist."""
        return chain.from_iterable(objects.values() for objects in self._by_namespace.values())

    def clear(self) -> None:
        """Forget the objects: the cache has them."""
        self._by_namespace.clear()
        self.undecodable.clear()
