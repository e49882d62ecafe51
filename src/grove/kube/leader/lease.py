"""The Lease object of leader election: its fields, and how it is read, watched and written.

No candidate relies on the wall clock of another: the times in a Lease are for users. What counts is when each
candidate saw the Lease change, on its own clock (`ObservedLease`), and the resourceVersion that each write is
based on.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.meta import ObjectMeta
from grove.kube.client import watch
from grove.kube.client.client import Client
from grove.kube.client.resource import LEASES
from grove.kube.errors import ConfigError, LostReply, NotFound


class LeaseTiming(Struct, frozen=True):
    """How long a lease lasts, and how often it is renewed, in seconds."""

    lease_duration: float = timing.LEASE_DURATION
    renew_deadline: float = timing.LEASE_RENEW_DEADLINE
    retry_period: float = timing.LEASE_RETRY_PERIOD

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ConfigError(
                "leader election needs retryPeriod < renewDeadline < leaseDuration, "
                f"got {self.retry_period:g}, {self.renew_deadline:g}, {self.lease_duration:g}: correct them"
            )

    @property
    def longest_write(self) -> float:
        """The timeout for writes: sent before the renew deadline, they end before the lease can pass on."""
        return 0.9 * (self.lease_duration - self.renew_deadline)


class LeaseSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The holder of the lease, and for how long it holds it after each renewal."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, frozen=True, gc=False):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


def is_held(lease: Lease, now: datetime) -> bool:
    """Whether a candidate holds the lease and has renewed it in time, by the wall clock: for users, not for
    candidates."""
    spec = lease.spec
    if not spec.holder_identity or not spec.renew_time:
        return False
    duration = timedelta(seconds=spec.lease_duration_seconds or timing.LEASE_DURATION)
    try:
        return datetime.fromisoformat(spec.renew_time) + duration > now
    except OverflowError:  # beyond the year 9999, in a Lease that anyone may have written
        return True


class ObservedLease(Struct, frozen=True):
    """A state of the lease, and when it was first seen on the candidate's clock. None: no lease exists."""

    lease: Lease | None
    since: float
    deleted: bool = False

    def observe(self, lease: Lease | None, now: float) -> ObservedLease:
        """The same state again, or a new one from now on."""
        if lease is None:
            # The holder may not have seen yet that it was deleted.
            deleted = self.deleted or (self.lease is not None and bool(self.lease.spec.holder_identity))
            return self if self.lease is None else ObservedLease(None, now, deleted)
        same = self.lease is not None and self.lease.spec == lease.spec
        return ObservedLease(lease, self.since if same else now)

    def available_at(self, default_duration: float) -> float:
        """When it may be acquired: at once without a holder, else a whole duration after it was seen held."""
        if self.lease is None:
            return self.since + default_duration if self.deleted else self.since
        if not self.lease.spec.holder_identity:
            return self.since
        return self.since + (self.lease.spec.lease_duration_seconds or default_duration)


def new_identity() -> str:
    """A unique name for this process, also different from a later process in the same pod."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:12]}"


def held_spec(
    known: Lease | None, identity: str, timing: LeaseTiming, wall_clock: datetime
) -> dict[str, Any]:
    """The spec of a lease that this candidate holds, from now on or still."""
    before = known.spec if known else LeaseSpec()
    now = wall_clock.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    held_before = before.holder_identity == identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(timing.lease_duration),
        "acquireTime": before.acquire_time if held_before else now,
        "renewTime": now,
        "leaseTransitions": (before.lease_transitions or 0) + (known is not None and not held_before),
    }


def released_spec(known: Lease | None) -> dict[str, Any]:
    """The spec of a lease without a holder, which any candidate may acquire."""
    transitions = known.spec.lease_transitions if known else None
    return {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": transitions or 0}


class LeaseClient:
    """Reads, watches and writes one Lease. A request that takes longer than `request_timeout` is lost."""

    def __init__(self, client: Client, namespace: str, name: str, request_timeout: float) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._request_timeout = request_timeout
        self._decoder = watch.EventDecoder(Lease, LEASES)

    async def read(self) -> Lease | None:
        """The lease, None if it does not exist."""
        async with _within(self._request_timeout):
            try:
                return await self._client.get(LEASES, self._name, namespace=self._namespace, as_type=Lease)
            except NotFound:
                return None

    async def write(self, known: Lease | None, spec: dict[str, Any]) -> Lease:
        """Write the lease if it is still `known`; raises Conflict, AlreadyExists or NotFound if not."""
        metadata = {"resourceVersion": known.metadata.resource_version} if known else {"name": self._name}
        body = {"metadata": metadata, "spec": spec}
        async with _within(self._request_timeout):
            if known is None:
                return await self._client.create(LEASES, body, namespace=self._namespace, as_type=Lease)
            return await self._client.patch(
                LEASES, self._name, body, namespace=self._namespace, as_type=Lease
            )

    async def changes(self) -> AsyncGenerator[Lease | None, None]:
        """The lease and each new state of it, None when it is deleted, until the server ends the watch."""
        parameters = {
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": "",  # not that of the lease, which may be too old for a restarted server
            "timeoutSeconds": timing.LEASE_WATCH_LIFETIME,
        }
        async with self._client.stream(
            LEASES, parameters, namespace=self._namespace, idle_timeout=timing.WATCH_IDLE_TIMEOUT
        ) as stream:
            async for lines in watch.line_batches(stream.chunks()):
                for event in map(self._decoder.decode, lines):
                    if isinstance(event, watch.Event):
                        yield None if event.type == "DELETED" else event.object


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Bounds one request, so that it cannot use up the time for all of them."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise LostReply(f"lease: no answer in {seconds:g} s") from None
