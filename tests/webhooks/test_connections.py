"""The webhooks against peers that hold connections, send parts of requests, or no HTTP: over TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from grove import timing
from grove.kube.certs.certificates import issue_authority, issue_serving
from grove.kube.certs.serving_context import ServingContext
from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.refusals import Refusal
from grove.rules.podcliqueset.defaults import default_set
from grove.webhooks.registrations import Path
from tests.kube.server.test_refusals import count
from tests.webhooks.http_server import Address, serving
from tests.webhooks.reviews import review, reviewer, workload

API_SERVER, PEER = "127.0.0.1", "127.0.0.2"
GOOD = json.dumps(review("CREATE", default_set(workload()))).encode()
HALF = b"POST /webhooks/validate-podcliqueset HTTP/1.1\r\nHost: localhost\r\n"
NOW = datetime.now(UTC)
TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def certificate() -> ServingContext:
    context = ServingContext()
    context.use(issue_serving(issue_authority(NOW), ("localhost",), NOW))
    return context


@pytest.fixture
async def server(certificate: ServingContext) -> AsyncIterator[Address]:
    async with serving(reviewer(), certificate.context) as address:
        yield address


_opened: list[Stream] = []


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    """Closes what `connect` has opened."""
    yield
    while _opened:
        _, writer = _opened.pop()
        writer.transport.abort()
        writer.close()


async def connect(address: Address, peer: str = PEER, *, tls: bool = True) -> Stream:
    context = TRUSTING if tls else None
    stream = await asyncio.open_connection(*address, ssl=context, local_addr=(peer, 0))
    _opened.append(stream)
    return stream


def head(length: int, path: str = Path.VALIDATE_SET) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


async def ask(stream: Stream, body: bytes = GOOD) -> int:
    """Send a review on a connection; returns the HTTP status."""
    reader, writer = stream
    writer.write(head(len(body)) + body)
    return await read_status(reader)


async def read_status(reader: asyncio.StreamReader) -> int:
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in answer.splitlines() if line.lower().startswith(b"content-length")
    )
    await reader.readexactly(length)
    return int(answer.split()[1])


async def closed(stream: Stream) -> None:
    """Wait until the server closes the connection."""
    with suppress(OSError):
        while await stream[0].read(2**16):
            pass


async def connected(address: Address, peers: Iterable[str]) -> list[Stream]:
    return [await connect(address, peer) for peer in peers]


async def test_half_sent_head_is_closed_in_time(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "REQUEST_HEAD_TIMEOUT", 0.2)
    before = count("test", Refusal.HEAD_TIMEOUT)
    kept = await connect(server, API_SERVER)
    assert await ask(kept) == 200
    streams = await connected(server, [PEER] * 20)
    async with asyncio.timeout(10):
        for _, writer in streams:
            writer.write(HALF)
        await asyncio.gather(*map(closed, streams))
    assert count("test", Refusal.HEAD_TIMEOUT) == before + 20
    assert await ask(kept) == 200, "an idle connection has more time than a head"
    _, writer = kept
    writer.write(HALF)
    await asyncio.wait_for(closed(kept), 10)


async def test_dripping_head_is_closed_in_time(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "REQUEST_HEAD_TIMEOUT", 0.3)
    reader, writer = await connect(server)
    ended = asyncio.create_task(closed((reader, writer)))
    async with asyncio.timeout(10):
        while not ended.done():
            writer.write(b"G")
            await asyncio.sleep(0.05)


async def test_stalled_handshake_is_closed_in_time(
    certificate: ServingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "HANDSHAKE_TIMEOUT", 0.2)
    before = count("test", Refusal.HANDSHAKE)
    async with serving(reviewer(), certificate.context) as address, asyncio.timeout(10):
        silent = [await connect(address, tls=False) for _ in range(5)]
        silent[0][1].write(b"\x16\x03\x01")
        await asyncio.gather(*map(closed, silent))
        assert await ask(await connect(address, API_SERVER)) == 200
    assert count("test", Refusal.HANDSHAKE) == before + 5


async def test_idle_connection_is_closed_in_time(
    certificate: ServingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "REVIEW_KEEPALIVE", 0.2)
    async with serving(reviewer(), certificate.context) as address, asyncio.timeout(10):
        unused, used = await connect(address), await connect(address)
        assert await ask(used) == 200
        await asyncio.gather(closed(unused), closed(used))


@pytest.mark.parametrize("peers", [[PEER], [f"127.0.0.{number}" for number in range(2, 8)]], ids=len)
async def test_connections_are_limited_and_api_server_served(
    certificate: ServingContext, peers: list[str]
) -> None:
    """One peer, or several, that hold connections do not keep others from being answered."""
    limits = ConnectionLimits(total=16, per_peer=8)
    before = count("test", Refusal.CONNECTIONS)
    async with serving(reviewer(), certificate.context, limits) as address, asyncio.timeout(30):
        kept = await connect(address, API_SERVER)
        assert await ask(kept) == 200
        streams = await connected(address, [peers[each % len(peers)] for each in range(40)])
        for _, writer in streams:
            writer.write(HALF)
        assert await ask(kept) == 200
        for _ in range(20):
            fresh = await connect(address, API_SERVER)
            assert await ask(fresh) == 200
            fresh[1].transport.abort()
        done, pending = await asyncio.wait(
            [asyncio.create_task(closed(each)) for each in streams], timeout=0.2
        )
        assert len(pending) <= (limits.per_peer if len(peers) == 1 else limits.total)
        for task in pending:
            task.cancel()
    assert count("test", Refusal.CONNECTIONS) >= before + len(done)


async def test_announced_large_body_is_refused_unread(server: Address) -> None:
    before = count("test", Refusal.TOO_LARGE)
    reader, writer = await connect(server)
    writer.write(head(timing.MAX_REVIEW + 1))
    assert await asyncio.wait_for(read_status(reader), 5) == 413
    assert count("test", Refusal.TOO_LARGE) == before + 1


async def test_bytes_of_bodies_are_bounded_and_others_answered(
    server: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "REVIEW_BYTES", 4 * 2**20)
    monkeypatch.setattr(timing, "REVIEW_BODY_TIMEOUT", 30.0)
    part = b" " * 2**20
    streams = await connected(server, [PEER] * 8)
    async with asyncio.timeout(20):
        for _, writer in streams:
            writer.write(head(2 * len(part)) + part)
        dropped = [asyncio.create_task(read_status(reader)) for reader, _ in streams]
        kept = await connect(server, API_SERVER)
        for _ in range(5):
            assert await ask(kept, GOOD + b" " * 2**20) == 200
        done, pending = await asyncio.wait(dropped, timeout=1)
        assert {task.result() for task in done} == {503}
        assert len(done) >= 4
        for task in pending:
            task.cancel()


async def test_large_reviews_do_not_delay_small_ones(server: Address) -> None:
    """These take seconds each; the small one is answered while the first is computed."""
    large = {**workload(), "spec": {"template": {"cliques": [{}] * (timing.OBJECT_VALUES - 100)}}}
    body = json.dumps(review("CREATE", large), separators=(",", ":")).encode()
    heavy = [asyncio.create_task(ask(each, body)) for each in await connected(server, [PEER] * 3)]
    small = await connect(server, API_SERVER)
    slowest, loop = 0.0, asyncio.get_running_loop()
    async with asyncio.timeout(60):
        while not any(task.done() for task in heavy):
            began = loop.time()
            assert await ask(small) == 200
            slowest = max(slowest, loop.time() - began)
        assert 0 < slowest < timing.WEBHOOK_TIMEOUT_SECONDS / 2
        assert set(await asyncio.gather(*heavy)) <= {200, 408}


GARBAGE = [
    b"\x00\x01\x02\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
    b"GET / HTTP/1.1\r\nA\x00: b\r\n\r\n",
    HALF + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    HALF + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n",
    HALF + b"Content-Type: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    HALF + b"Expect: something\r\nContent-Length: 0\r\n\r\n",
    HALF + b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT x HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


async def test_malformed_requests_are_one_line_without_traceback(server: Address) -> None:
    before = count("test", Refusal.MALFORMED)
    with capture_logs() as logs:
        for garbage in GARBAGE * 2:
            reader, writer = await connect(server)
            writer.write(garbage)
            with suppress(TimeoutError, OSError):
                assert b" 500 " not in await asyncio.wait_for(reader.readline(), 2)
            writer.transport.abort()
        assert await ask(await connect(server, API_SERVER)) == 200
    assert count("test", Refusal.MALFORMED) >= before + len(GARBAGE)
    assert [line for line in logs if line["log_level"] == "error" or "exc_info" in line] == []
    assert [line["event"] for line in logs if "malformed" in line["action"]] == ["refused"]


async def test_peer_that_leaves_within_a_body_is_not_logged(server: Address) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            _, writer = await connect(server)
            writer.write(head(1000) + b"{")
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.transport.abort()
        assert await ask(await connect(server, API_SERVER)) == 200
    assert [line for line in logs if line["log_level"] != "debug"] == []
