"""Leader election among the replicas of the operator, by a Lease.

The leader counts from the moment it sent its last successful renewal and stops writing at the renew deadline;
the followers count a whole lease duration from the moment they saw that renewal, which is later. Each write
carries the resourceVersion it is based on, so that a follower whose watch has stalled cannot acquire a lease
that was renewed meanwhile. Followers watch: a released lease is acquired at once, and nothing is polled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime

from grove.kube.client.client import Client
from grove.kube.client.retry import Backoff
from grove.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from grove.kube.leader.leadership import Clock, Leadership, boottime
from grove.kube.leader.lease import Lease, LeaseClient, LeaseTiming, ObservedLease, held_spec, released_spec
from grove.logger import get_logger

log = get_logger("grove.kube.leader.elector")


class Elector:
    """One candidate of a leader election."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: LeaseTiming | None = None,
        clock: Clock = boottime,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._name = name
        self.identity = identity
        self.timing = timing or LeaseTiming()
        self._clock = clock
        self._wall_clock = wall_clock
        self._observed = ObservedLease(None, float("-inf"))
        self._backoff = Backoff(first=0.1, longest=self.timing.retry_period)
        request_timeout = min(self.timing.longest_write, self.timing.renew_deadline / 3)
        self._lease_client = LeaseClient(client, namespace, name, request_timeout)
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets

    @asynccontextmanager
    async def lead(self) -> AsyncIterator[Leadership]:
        """Wait to be elected, stay leader while the body runs, and release the lease at its end.

        The body has to watch for `leadership.ended()`: from then on nothing can be written.
        """
        leadership = await self._acquire()
        log.info("elected", key=self._name, action="lead", reason=self.identity)
        renewing = asyncio.create_task(self._renew_loop(leadership), name=f"renew {self._name}")
        try:
            yield leadership
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            await self._release(leadership)

    async def _acquire(self) -> Leadership:
        """Follow until the lease is available, and acquire it."""
        failures = 0
        while True:
            try:
                self._observe(await self._lease_client.read())
                await self._wait_until_available()
                if self._seconds_until_available() <= 0 and (leadership := await self._try_acquire()):
                    return leadership
            except KubeError as problem:
                log.warning("lease cannot be read", key=self._name, action="retry", reason=str(problem))
                failures += 1
            else:
                failures = 0
            await asyncio.sleep(self._backoff.pause(failures, self._rng))

    async def _wait_until_available(self) -> None:
        """Watch the lease until it is available, or until the watch ends."""
        if self._seconds_until_available() <= 0:
            return
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(self._seconds_until_available()) as limit,
                aclosing(self._lease_client.changes()) as changes,
            ):
                async for lease in changes:
                    self._observe(lease)
                    if self._seconds_until_available() <= 0:
                        return
                    limit.reschedule(loop.time() + self._seconds_until_available())

    def _observe(self, lease: Lease | None) -> None:
        self._observed = self._observed.observe(lease, self._clock())

    def _seconds_until_available(self) -> float:
        return self._observed.available_at(self.timing.lease_duration) - self._clock()

    async def _try_acquire(self) -> Leadership | None:
        leadership = Leadership(self._clock)
        try:
            await self._write_held(leadership)
        except (Conflict, AlreadyExists, NotFound):
            return None  # another candidate was faster, or the lease was renewed meanwhile
        return leadership

    async def _renew_loop(self, leadership: Leadership) -> None:
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
        except Exception as bug:  # the leader has to stop, or it would wait for ever
            log.exception(
                "lease renewal failed unexpectedly", key=self._name, action="end leadership", reason=str(bug)
            )
            leadership.end(f"renewing failed: {bug}")
        log.error("leadership lost", key=self._name, action="stop writing", reason=await leadership.ended())

    async def _renew(self, leadership: Leadership) -> None:
        if not leadership.held:  # the process was stopped: its view of the lease is outdated
            leadership.end("the lease was not renewed in time")
            return
        try:
            await self._write_held(leadership)
        except (Conflict, AlreadyExists, NotFound):
            await self._check_holder(leadership)
        except KubeError as problem:
            log.warning("lease not renewed", key=self._name, action="retry", reason=str(problem))

    async def _check_holder(self, leadership: Leadership) -> None:
        """The lease changed: another candidate acquired it, or an own renewal took effect without a reply."""
        with suppress(KubeError):
            self._observe(await self._lease_client.read())
            lease = self._observed.lease
            if lease and lease.spec.holder_identity != self.identity:
                leadership.end(f"{lease.spec.holder_identity or 'no candidate'} holds the lease")

    async def _release(self, leadership: Leadership) -> None:
        """Release the lease, so that a follower acquires it at once; does nothing if it is not held."""
        if not leadership.held:
            leadership.end("it was released")
            return
        leadership.end("it was released")
        try:
            await self._release_lease()
        except KubeError as problem:
            log.warning("lease not released", key=self._name, action="let it expire", reason=str(problem))

    async def _release_lease(self) -> None:
        lease = self._observed.lease
        try:
            await self._lease_client.write(lease, released_spec(lease))
        except Conflict:
            # The last renewal may have taken effect, though its reply was lost.
            lease = await self._lease_client.read()
            if lease and lease.spec.holder_identity == self.identity:
                await self._lease_client.write(lease, released_spec(lease))

    async def _write_held(self, leadership: Leadership) -> None:
        """Write this candidate as the holder. The deadline counts from before the write: other candidates may
        see the write that early."""
        sent = self._clock()
        known = self._observed.lease
        lease = await self._lease_client.write(
            known, held_spec(known, self.identity, self.timing, self._wall_clock())
        )
        self._observed = ObservedLease(lease, sent)
        leadership.extend(sent + self.timing.renew_deadline)
