"""A transport that injects faults, by chance (`FaultRates`) or for certain (`inject`).

Wraps any transport. Part of the product, so that other controllers can be tested with the same faults. They
are those that the API's contract allows:

- watch events are late, repeated, out of order between objects, or cut off in the middle;
- an event is lost: the connection breaks and the server no longer has the version (410);
- the watch of one resource stops (`pause_watch`) while the others go on;
- a write is rejected (409, 429, 500), or takes effect without a reply; that of a `get` is lost by `inject`;
- the process stops right after its n-th write took effect.

Chance is a hash of seed, fault and number of the request: a run has the same faults in any order of tasks.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from grove.kube.client import decoding, watch
from grove.kube.client.transport import Request, Response, Stream, Transport
from grove.kube.errors import LostReply
from grove.logger import get_logger

log = get_logger("grove.kube")

WriteFault = Literal["conflict", "throttle", "error", "lose"]
EventFault = Literal["delay", "drop", "cut", "duplicate", "reorder"]
Fault = WriteFault | EventFault
_REJECTIONS = {
    "conflict": (409, "Conflict"),
    "throttle": (429, "TooManyRequests"),
    "error": (500, "InternalError"),
}


class FaultRates(Struct, frozen=True):
    """The probability of each fault: the first four per write, the others per watch event."""

    conflict: float = 0.0
    throttle: float = 0.0
    error: float = 0.0
    lose: float = 0.0
    delay: float = 0.0
    drop: float = 0.0
    cut: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    longest_delay: float = 0.2


class ProcessStopped(BaseException):
    """The simulated process has ended: it sends nothing more. Code under test must not catch it."""


class _InjectedFault(Struct):
    """A fault that happens to the next `times` matching requests or events, regardless of the rates."""

    fault: str
    resource: str
    verb: str
    name: str
    times: int

    def matches(self, fault: str, resource: str, verb: str, name: str) -> bool:
        same = self.fault == fault and self.resource in ("", resource)
        if not (same and self.verb in ("", verb) and self.name in ("", name) and self.times):
            return False
        self.times -= 1
        return True


class FaultyTransport:
    """A transport that injects faults. Counts them, and in `writes` the writes that took effect."""

    def __init__(
        self,
        inner: Transport,
        *,
        seed: int = 0,
        rates: FaultRates | None = None,
        stop_after_writes: int | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._inner = inner
        self._seed = seed
        self.rates = rates or FaultRates()
        self.fault_counts: Counter[str] = Counter()
        self.expected_faults = 0.0
        """How many random faults the rates make likely, given the events and writes so far."""
        self.writes = 0
        self._stop_after = stop_after_writes
        self._on_stop = on_stop
        self._stopped = False
        self._injected: list[_InjectedFault] = []
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._resumed: dict[str, asyncio.Event] = {}
        self._expired: set[str] = set()

    def inject(
        self, fault: Fault, *, resource: str = "", verb: str = "", name: str = "", times: int = 1
    ) -> None:
        """Inject a fault for certain, at the next write (or watch event) that matches.

        `verb` of a watch event is its type, such as `DELETED`.
        """
        known = (*get_args(WriteFault), *get_args(EventFault))
        if fault not in known:
            raise ValueError(f"no fault {fault!r}: choose one of {', '.join(known)}")
        self._injected.append(_InjectedFault(fault, resource, verb, name, times))

    def pause_watch(self, resource: str) -> None:
        """Hold back all watch events and lists of the resource from now on."""
        self._resumed.setdefault(resource, asyncio.Event()).clear()

    def resume_watch(self, resource: str) -> None:
        """Deliver what was held back."""
        self._resumed.setdefault(resource, asyncio.Event()).set()

    async def send(self, request: Request) -> Response:
        """The inner transport's reply, or a fault."""
        self._check_stopped()
        if not request.is_write:
            response = await self._inner.send(request)
            if request.verb == "list":
                await self.wait_while_paused(request.resource)
            elif any(
                each.verb == "get" and each.matches("lose", *request.identity) for each in self._injected
            ):
                raise LostReply(f"{request}: reply lost (fault)")
            return response
        for fault, (code, reason) in _REJECTIONS.items():
            if self.should_inject(fault, *request.identity):
                return _rejection(code, reason)
        return await self._write(request)

    async def _write(self, request: Request) -> Response:
        response = await self._inner.send(request)
        self._check_stopped()
        if response.status < 300:
            self.writes += 1
            if self.writes == self._stop_after:
                self._stop()
        if self.should_inject("lose", *request.identity):
            raise LostReply(f"{request}: reply lost (fault); it may have taken effect")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """The inner transport's stream, with faults."""
        self._check_stopped()
        if request.resource in self._expired:
            self._expired.discard(request.resource)
            yield _RejectedStream(_rejection(410, "Expired"))
            return
        async with self._inner.stream(request) as inner:
            yield _FaultyStream(inner, self, request.resource)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    def should_inject(self, fault: str, resource: str, verb: str, name: str) -> bool:
        """Whether the fault happens now; counts and logs it if it does."""
        certain = any(injected.matches(fault, resource, verb, name) for injected in self._injected)
        rate: float = getattr(self.rates, fault)
        self.expected_faults += rate
        if not certain and self.chance(fault, resource, verb, name) >= rate:
            return False
        self.fault_counts[fault] += 1
        log.debug("fault", key=f"{resource}/{name}", action=verb, reason=fault)
        return True

    def chance(self, *identity: str) -> float:
        """A number in [0, 1) that depends only on the seed and on how often this identity was used."""
        self._seen[identity] += 1
        return random.Random(f"{self._seed}/{identity}/{self._seen[identity]}").random()  # noqa: S311

    async def wait_while_paused(self, resource: str) -> None:
        """Wait while the watch of the resource is paused."""
        gate = self._resumed.get(resource)
        if gate is not None:
            await gate.wait()
        self._check_stopped()

    def expire(self, resource: str) -> None:
        """Answer the next watch of the resource with 410: the server no longer has its version."""
        self._expired.add(resource)

    def _stop(self) -> None:
        self._stopped = True
        for gate in self._resumed.values():
            gate.set()
        if self._on_stop:
            self._on_stop()
        raise ProcessStopped(f"stopped after write {self.writes}, as requested")

    def _check_stopped(self) -> None:
        if self._stopped:
            raise ProcessStopped("this process has been stopped: start another with a transport of its own")


class _FaultyStream:
    """A watch with faults in its events."""

    def __init__(self, inner: Stream, faults: FaultyTransport, resource: str) -> None:
        self._inner = inner
        self._faults = faults
        self._resource = resource
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The inner stream's lines, with faults; a rejection is passed on unchanged."""
        if self.status >= 300:
            async for chunk in self._inner.chunks():
                yield chunk
            return
        async for lines in watch.line_batches(self._inner.chunks()):
            for group in self._reordered(lines):
                async for chunk in self._deliver(group):
                    yield chunk

    def _reordered(self, lines: list[bytes]) -> list[list[bytes]]:
        """The lines, with some neighbours swapped.

        Only neighbours about different objects are swapped, and a swapped pair is delivered in one piece: if
        the connection could break between the two, the later version would hide that the earlier is missing.
        """
        groups: list[list[bytes]] = []
        for line in lines:
            before = groups[-1] if groups else []
            if len(before) == 1 and self._may_swap(before[0], line):
                groups[-1] = [line, before[0]]
            else:
                groups.append([line])
        return groups

    def _may_swap(self, first: bytes, second: bytes) -> bool:
        one, other = _peek(first), _peek(second)
        if one is None or other is None or one[1] == other[1]:
            return False
        return self._faults.should_inject("reorder", self._resource, *other)

    async def _deliver(self, group: list[bytes]) -> AsyncIterator[bytes]:
        faults = self._faults
        event = _peek(group[0])
        await faults.wait_while_paused(self._resource)
        if event is None:
            yield _text(group)
            return
        kind, name = event
        if faults.should_inject("delay", self._resource, kind, name):
            share = faults.chance("length", self._resource, kind, name)
            await asyncio.sleep(faults.rates.longest_delay * share)
        if faults.should_inject("drop", self._resource, kind, name):
            faults.expire(self._resource)
            raise LostReply(f"watch {self._resource}: event of {name} dropped (fault)")
        if faults.should_inject("cut", self._resource, kind, name):
            yield group[0][: len(group[0]) // 2]
            raise LostReply(f"watch {self._resource}: cut in the middle of {name} (fault)")
        yield _text(group)
        if faults.should_inject("duplicate", self._resource, kind, name):
            yield _text(group)


class _RejectedStream:
    """A stream that the server rejected."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The Status with the reason."""
        yield self._body


def _text(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _peek(line: bytes) -> tuple[str, str] | None:
    """Type and name of an event's object; None for bookmarks and errors, which get no faults."""
    try:
        event = decoding.decode_text(line, watch.Event[decoding.Object])
    except Exception:  # an object that cannot be decoded
        return None
    is_object = event.type in ("ADDED", "MODIFIED", "DELETED")
    return (event.type, event.object.metadata.name) if is_object else None


def _rejection(code: int, reason: str) -> Response:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "fault"}
    return Response(code, {}, msgspec.json.encode(status))
