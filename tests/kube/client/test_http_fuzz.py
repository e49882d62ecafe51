"""Replies with random faults: a request ends with its own reply or with an error of one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.client.http_reply import BadReply, HttpReply, ReplyParser
from grove.kube.client.resource import PODS
from grove.kube.client.rest import RestClient
from grove.kube.client.retry import NO_RETRY
from grove.kube.client.transport import HttpTransport, Request
from grove.kube.errors import KubeError, LostReply
from tests.fuzzing import seeds
from tests.kube.client.test_http_reply import INVALID_REPLIES, REPLIES

SAMPLES = [*sorted(REPLIES), *INVALID_REPLIES]
TOKENS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b";",
    b"0",
    b"-1",
    b"+5",
    b"0x",
    b"_",
    b"\x00",
]
FIELDS = [b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Connection: close"]
MORE_FIELDS = [b"Upgrade: x", b"Connection: upgrade", b"Retry-After: \xb2", b"Retry-After: " + b"9" * 400]
STARTS = [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.0 ", b"HTTP/1.1 204 \r\n"]
BODIES = [b"5\r\nhello\r\n", b"0\r\n\r\n", b"[" * 2_000, b"{" * 300, b'"', b"\xff\xfe", b"{}", b"x" * 5_000]
NUMBERS = [b"f" * 16, b"9" * 20, b"\xb2"]
WORDS = [*TOKENS, *(field + b"\r\n" for field in FIELDS + MORE_FIELDS), *STARTS, *BODIES, *NUMBERS]


def one_line(problem: Exception) -> bool:
    return len(str(problem).splitlines()) == 1


STATUSES = [
    *BODIES,
    b'{"code":1e400}',
    b'{"code":' + b"9" * 5_000 + b"}",
    b'{"message":"\xff\xfe"}',
    b'{"message":"\\ud800","reason":"\\u0000\\n"}',
    b'{"details":' + b"[" * 1_500 + b"]" * 1_500 + b"}",
    b'{"unknown":' + b'{"a":' * 1_500 + b"1" + b"}" * 1_500 + b"}",
    b'{"details":{"retryAfterSeconds":' + b"9" * 400 + b"}}",
    b'{"details":{"retryAfterSeconds":-5,"causes":[null]}}',
    b'{"code":200,"reason":"AlreadyExists"}',
    b'{"code":-1,"status":7}',
]


def odd_reply(chance: Random) -> bytes:
    """A reply that is valid HTTP, with odd contents."""
    code, body = chance.choice((200, 400, 403, 409, 410, 429, 500, 503, 799)), chance.choice(STATUSES)
    more = b"".join(field + b"\r\n" for field in chance.choices(MORE_FIELDS[1:], k=chance.randrange(2)))
    return b"HTTP/1.1 %d \r\n%sContent-Length: %d\r\n\r\n%s" % (code, more, len(body), body)


def mutated(chance: Random) -> bytes:
    """A reply with a few faults: bytes changed, removed, repeated, or significant ones inserted."""
    sent = bytearray(chance.choice(SAMPLES) if chance.random() < 0.7 else odd_reply(chance))
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(sent))
        until = min(len(sent), at + chance.choice((1, 2, 5, 20)))
        match chance.randrange(5):
            case 0:
                sent[at:at] = chance.choice(WORDS)
            case 1:
                del sent[at:until]
            case 2:
                sent[at:at] = sent[at:until] * chance.choice((1, 2, 50))
            case 3:
                sent[at:until] = chance.randbytes(until - at)
            case _:
                sent[at:until] = chance.choice(WORDS)
    return bytes(sent)


def outcome(pieces: list[bytes]) -> HttpReply | str:
    """The reply, `rejected`, or `incomplete`."""
    parser = ReplyParser()
    try:
        for piece in pieces:
            if (reply := parser.feed(piece)) is not None:
                return reply
    except BadReply as problem:
        return "rejected" if one_line(problem) else f"several lines: {problem}"
    return parser.end() or "incomplete"


def test_any_reply_is_parsed_or_rejected_in_any_pieces() -> None:
    for seed, chance in seeds(1_500):
        sent = mutated(chance)
        whole = outcome([sent])
        cuts = sorted(chance.choices(range(len(sent) + 1), k=chance.randint(1, 9)))
        for pieces in (
            [sent[n : n + 1] for n in range(len(sent))],
            [sent[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)],
        ):
            cut = outcome([piece for piece in pieces if piece])
            # Data after a reply may arrive after it was returned.
            if isinstance(whole, HttpReply) and isinstance(cut, HttpReply):
                assert (whole.status, whole.headers, whole.body) == (cut.status, cut.headers, cut.body), seed
                assert whole.keep_alive <= cut.keep_alive, seed
            else:
                assert whole == cut, (seed, sent)


class Server:
    """Answers with the given bytes, and then closes the connection."""

    def __init__(self) -> None:
        self.answer = b""
        self.closes = True
        self.url = ""

    def sender(self) -> RestClient:
        return RestClient(Config(server=self.url, credentials=StaticCredentials()), retry=NO_RETRY)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(self.answer)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


async def answers(transport: HttpTransport, times: int) -> list[bytes]:
    """The replies to so many requests; one may fail on a connection that the server has just closed."""
    found = []
    for _ in range(times):
        with suppress(LostReply):
            found.append((await transport.send(Request("GET", "/x", "get", timeout=60))).body)
    return found


async def test_any_request_gets_its_own_reply_or_an_error() -> None:
    async with serving() as server:
        transport = HttpTransport(Config(server=server.url, credentials=StaticCredentials()))
        for seed, chance in seeds(250):
            server.answer, server.closes = mutated(chance), True
            with suppress(LostReply):
                await transport.send(Request("GET", "/x", "get", timeout=60))
            body, server.closes = b"reply to %d" % seed, False
            server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            assert await answers(transport, 3) in ([body] * 2, [body] * 3), seed
        await transport.close()


async def attempt(sender: RestClient, watch: bool) -> str:
    """The error of a request, as it is logged."""
    try:
        if watch:
            async with sender.stream(PODS, {}, idle_timeout=60) as stream:
                async for _ in stream.chunks():
                    pass
        else:
            await sender.raw("GET", "/x")
    except KubeError as problem:
        return str(problem)
    return "nothing"


@pytest.mark.parametrize("watch", [True, False])
async def test_any_failure_is_a_kube_error(watch: bool) -> None:
    """Also for the stream of a watch, and for the body of a rejection."""
    async with serving() as server, server.sender() as sender:
        for seed, chance in seeds(150):
            server.answer = mutated(chance)
            assert len((await attempt(sender, watch)).splitlines()) == 1, seed
