"""Certificates that look after themselves: made, kept, renewed and announced by whichever replica is there.

Nothing polls. A pass is made when a certificate is due, and when somebody made, changed or wiped one of our
webhook configurations: another replica that announces a new authority wakes this one the same way.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from grove.kube.client import Client
from grove.kube.custody import Custody
from grove.kube.retry import Backoff
from grove.kube.serving import ServingContext
from grove.webhooks.callers import Callers
from grove.webhooks.registrations import SERVICE

log = structlog.get_logger("grove.webhooks")

_LONGEST_REST = 12 * 3600.0  # then the Secret is read again, in case someone else has replaced it
_SHORTEST_REST = 1.0  # between two passes, should somebody else keep writing what we write


class Keeper:
    """Looks after the certificate of one replica, side by side with those of the others."""

    def __init__(
        self,
        client: Client,
        serving: ServingContext,
        callers: Callers,
        *,
        namespace: str,
        secret: str,
        spread: float = 5.0,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._serving, self._callers = client, serving, callers
        self._namespace, self._secret = namespace, secret
        self.spread, self.wall = spread, wall
        self.trouble = ""
        """Why the last pass failed; empty if it did not."""

    async def run(self) -> None:
        """Refresh now, whenever it is due and whenever the configurations change, until cancelled."""
        backoff, rng, failures = Backoff(first=1.0, most=60.0), random.Random(), 0  # noqa: S311 - jitter
        await self._callers.synced()
        while True:
            self._callers.changed.clear()
            begun = time.monotonic()
            try:
                due = await self.refresh()
                rest = min(_LONGEST_REST, max(_SHORTEST_REST, (due - self.wall()).total_seconds()))
                self.trouble, failures = "", 0
            except Exception as problem:  # admission keeps answering with the certificate that it has
                self.trouble = str(problem) or type(problem).__name__
                rest, failures = backoff.pause(failures, rng), failures + 1
                log.warning("certificate not renewed", key=self._key, action="retry", reason=self.trouble)
            await _woken(self._callers.changed, rest)
            await asyncio.sleep(max(0.0, begun + _SHORTEST_REST - time.monotonic()))

    async def refresh(self) -> datetime:
        """One pass; returns when the next one is due."""
        before = self._serving.shown
        custody = Custody(
            self._client,
            self._serving,
            namespace=self._namespace,
            secret=self._secret,
            hosts=hosts(self._namespace, self._callers),
            webhooks=self._callers.present,
            announced=b"".join(dict.fromkeys(caller.trust for caller in self._callers)),
            spread=self.spread,
            wall=self.wall,
        )
        due = await custody.refresh()
        if self._serving.shown is not before:
            log.info("certificate shown", key=self._key, action="serve", reason=f"due {due:%Y-%m-%d}")
        return due

    @property
    def _key(self) -> str:
        return f"{self._namespace}/{self._secret}"


def hosts(namespace: str, callers: Callers) -> tuple[str, ...]:
    """The names that the certificate must be good for: those of the Service, and those that we are called."""
    service = (f"{SERVICE}.{namespace}.svc", SERVICE, f"{SERVICE}.{namespace}")
    full = (f"{SERVICE}.{namespace}.svc.cluster.local",)
    called = sorted(caller.host for caller in callers if caller.host and caller.host.isascii())
    return tuple(dict.fromkeys((*service, *full, *called)))


async def _woken(event: asyncio.Event, at_most: float) -> None:
    try:
        async with asyncio.timeout(at_most):
            await event.wait()
    except TimeoutError:
        return
