"""Elects one leader among replicas.

The leader counts from the moment it sent its last successful renewal and stops writing at the renew deadline;
the others count a whole lease duration from the moment they saw that renewal, which is later. Each write
names the resourceVersion it is based on, so that a follower whose view has stalled cannot take a lease that
was renewed behind its back. Followers watch: a released lease is taken at once, and nothing is polled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime

import structlog

from grove.kube.client import Client
from grove.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from grove.kube.leadership import Clock, Leadership, boottime
from grove.kube.lease import Lease, LeaseDesk, Sighting, Timing, claim, release
from grove.kube.retry import Backoff

log = structlog.get_logger("grove.kube.elector")


class Elector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing | None = None,
        clock: Clock = boottime,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._name = name
        self.identity = identity
        self.timing = timing or Timing()
        self._clock = clock
        self._wall = wall
        self._sighting = Sighting(None, float("-inf"))
        self._backoff = Backoff(first=0.1, most=self.timing.retry_period)
        patience = min(self.timing.longest_write, self.timing.renew_deadline / 3)
        self._desk = LeaseDesk(client, namespace, name, patience)
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets

    @asynccontextmanager
    async def lead(self) -> AsyncIterator[Leadership]:
        """Wait to be elected, stay leader while the body runs, and let go at its end.

        The body has to watch for `leadership.ended()`: from then on nothing can be written.
        """
        leadership = await self._win()
        log.info("elected", key=self._name, action="lead", reason=self.identity)
        keeping = asyncio.create_task(self._keep(leadership), name=f"keep {self._name}")
        try:
            yield leadership
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await self._release(leadership)

    async def _win(self) -> Leadership:
        """Follow until the lease can be taken, and take it."""
        failures = 0
        while True:
            try:
                self._see(await self._desk.read())
                await self._until_free()
                if self._wait_left() <= 0 and (leadership := await self._take()):
                    return leadership
            except KubeError as problem:
                log.warning("lease not seen", key=self._name, action="look again", reason=str(problem))
                failures += 1
            else:
                failures = 0
            await asyncio.sleep(self._backoff.pause(failures, self._rng))

    async def _until_free(self) -> None:
        """Watch the lease until it may be taken, or until the watch ends."""
        if self._wait_left() <= 0:
            return
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(self._wait_left()) as limit,
                aclosing(self._desk.changes()) as changes,
            ):
                async for lease in changes:
                    self._see(lease)
                    if self._wait_left() <= 0:
                        return
                    limit.reschedule(loop.time() + self._wait_left())

    def _see(self, lease: Lease | None) -> None:
        self._sighting = self._sighting.seen(lease, self._clock())

    def _wait_left(self) -> float:
        return self._sighting.free_at(self.timing.lease_duration) - self._clock()

    async def _take(self) -> Leadership | None:
        leadership = Leadership(self._clock)
        try:
            await self._claim(leadership)
        except (Conflict, AlreadyExists, NotFound):
            return None  # another was faster, or the lease was renewed behind our back
        return leadership

    async def _keep(self, leadership: Leadership) -> None:
        """Renew until that fails for too long or another holds the lease."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(leadership.remaining) as limit:
                while not leadership.is_over:
                    await asyncio.sleep(self.timing.retry_period)
                    await self._renew(leadership)
                    limit.reschedule(loop.time() + leadership.remaining)
        except TimeoutError:
            leadership.end("the lease could not be renewed in time")
        except Exception as mistake:  # whoever leads has to hear of it, or would stand there for ever
            log.exception("renewing failed in a way that nobody foresaw", key=self._name)
            leadership.end(f"renewing failed: {mistake}")
        log.error("leadership lost", key=self._name, action="stop writing", reason=await leadership.ended())

    async def _renew(self, leadership: Leadership) -> None:
        if not leadership.held:  # the process was stopped: whatever it knows is old
            leadership.end("the lease was not renewed in time")
            return
        try:
            await self._claim(leadership)
        except (Conflict, AlreadyExists, NotFound):
            await self._look_who_leads(leadership)
        except KubeError as problem:
            log.warning("lease not renewed", key=self._name, action="try again", reason=str(problem))

    async def _look_who_leads(self, leadership: Leadership) -> None:
        """The lease is not as we left it: another took it, or a renewal of ours landed without a reply."""
        with suppress(KubeError):
            self._see(await self._desk.read())
            lease = self._sighting.lease
            if lease and lease.spec.holder_identity != self.identity:
                leadership.end(f"{lease.spec.holder_identity or 'nobody'} holds the lease")

    async def _release(self, leadership: Leadership) -> None:
        """Let another take over at once. Without the lease there is nothing to let go of."""
        if not leadership.held:
            leadership.end("it was given up")
            return
        leadership.end("it was given up")
        try:
            await self._let_go()
        except KubeError as problem:
            log.warning("lease not released", key=self._name, action="leave it", reason=str(problem))

    async def _let_go(self) -> None:
        lease = self._sighting.lease
        try:
            await self._desk.write(lease, release(lease))
        except Conflict:
            lease = await self._desk.read()  # our last renewal may have landed, though its reply got lost
            if lease and lease.spec.holder_identity == self.identity:
                await self._desk.write(lease, release(lease))

    async def _claim(self, leadership: Leadership) -> None:
        """Write that we lead. The deadline counts from before the write: others may see it that early."""
        sent = self._clock()
        known = self._sighting.lease
        lease = await self._desk.write(known, claim(known, self.identity, self.timing, self._wall()))
        self._sighting = Sighting(lease, sent)
        leadership.extend(sent + self.timing.renew_deadline)
