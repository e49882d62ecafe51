"""Requests and watches through a proxy, which is plain HTTP here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.auth.secret_source import InlineSource
from grove.kube.client.transport import HttpTransport, Request
from grove.kube.errors import ConnectError, LostReply
from tests.kube.client.test_transport import free_port
from tests.kube.scripted_server import ScriptedServer, close_connection, reply, serve

WATCH = Request("GET", "/api/v1/pods?watch=true", "watch", "pods", timeout=60)


def behind(proxy: str) -> HttpTransport:
    token = StaticCredentials(token=InlineSource(b"secret"))
    return HttpTransport(Config(server="http://behind.example/root", credentials=token, proxy=proxy))


@pytest.fixture
async def proxy() -> AsyncIterator[ScriptedServer]:
    async with serve() as server:
        yield server


async def test_request_goes_through_the_proxy(proxy: ScriptedServer) -> None:
    proxy.script = [reply({"a": 1}, X_A="b")]
    transport = behind(proxy.url)
    found = await transport.send(Request("POST", "/x", "create", "pods", body=b"{}"))
    await transport.close()
    (seen,) = proxy.seen
    assert (found.status, found.headers["X-A"], found.body) == (200, "b", b'{"a":1}')
    assert (seen.method, seen.raw_path, seen.headers["Host"]) == (
        "POST",
        "http://behind.example/root/x",
        "behind.example",
    )
    assert seen.headers["Authorization"] == "Bearer secret"
    assert proxy.bodies == [b"{}"]


async def test_watch_through_proxy_is_read_piece_by_piece(proxy: ScriptedServer) -> None:
    async def two_pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await response.write(b"two\n")
        return response

    async def tear(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"some")
        assert request.transport is not None
        request.transport.abort()
        return response

    proxy.script = [two_pieces, tear]
    transport = behind(proxy.url)
    async with transport.stream(WATCH) as stream:
        assert stream.status == 200
        assert b"".join([piece async for piece in stream.chunks()]) == b"one\ntwo\n"
    with pytest.raises(LostReply, match="watch pods: connection lost"):
        async with transport.stream(WATCH) as stream:
            [piece async for piece in stream.chunks()]
    await transport.close()


async def test_lost_reply_of_proxy_is_ambiguous(proxy: ScriptedServer) -> None:
    proxy.script = [close_connection, close_connection]
    transport = behind(proxy.url)
    with pytest.raises(LostReply, match=r"create pods: connection lost \(.*\); it may have taken effect"):
        await transport.send(Request("POST", "/x", "create", "pods", body=b"{}"))
    with pytest.raises(LostReply, match="watch pods: connection lost"):
        async with transport.stream(WATCH):
            pass
    await transport.close()


async def test_unreachable_proxy_is_a_connect_error() -> None:
    transport = behind(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ConnectError, match="cannot be reached"):
        await transport.send(Request("GET", "/x", "get"))
    with pytest.raises(ConnectError, match="cannot be reached"):
        async with transport.stream(WATCH):
            pass
    await transport.close()
