"""Connections: trusted, refused, rotated, cut; and each fault told in one line that names the remedy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import Credential, StaticCredentials
from grove.kube.auth.secret_source import FileSource, InlineSource
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from grove.kube.client.retry import NO_RETRY
from grove.kube.client.transport import HttpTransport, Request
from grove.kube.errors import ConfigError, ConnectError, LostReply, Unauthorized
from tests.kube.certificate_authority import Authority
from tests.kube.scripted_server import ScriptedServer, failure, reply, serve

LOOK = Request("GET", "/version", "get")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def look(config: Config, connect_timeout: float = 60) -> None:
    transport = HttpTransport(config, connect_timeout=connect_timeout)
    try:
        assert (await transport.send(LOOK)).status == 200
    finally:
        await transport.close()


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[ScriptedServer]:
    async with serve(authority.server_context(authority.issue("real.name"))) as server:
        yield server


async def test_the_servers_certificate_is_verified(secure: ScriptedServer, authority: Authority) -> None:
    secure.script = [reply("ok")]
    await look(secure.config(authority=InlineSource(authority.pem)))
    with pytest.raises(ConnectError, match=r"cannot be trusted .*: set the cluster's certificate-authority"):
        await look(secure.config(authority=InlineSource(Authority().pem)))
    with pytest.raises(ConnectError, match="cannot be trusted"):
        await look(secure.config())


async def test_only_insecure_trusts_a_stranger(secure: ScriptedServer) -> None:
    secure.script = [reply("ok")]
    await look(secure.config(insecure=True))


async def test_tls_server_name_is_what_the_certificate_is_checked_for(
    secure: ScriptedServer, authority: Authority
) -> None:
    secure.script = [reply("ok")]
    await look(secure.config(authority=InlineSource(authority.pem), server_name="real.name"))
    with pytest.raises(
        ConnectError, match=r"for another name .*: correct the address or set tls-server-name"
    ):
        await look(secure.config(authority=InlineSource(authority.pem), server_name="other.name"))


async def test_an_expired_server_certificate_names_the_clock(authority: Authority) -> None:
    async with serve(authority.server_context(authority.issue("a", timedelta(hours=-1)))) as server:
        with pytest.raises(ConnectError, match="has expired: renew it, or check this machine's clock"):
            await look(server.config(authority=InlineSource(authority.pem)))


async def test_a_client_certificate_is_shown_and_rotates_with_its_file(
    secure: ScriptedServer, authority: Authority, tmp_path: Path
) -> None:
    shown = []

    async def remember(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        shown.append(subject[0][0][1])
        return web.Response(status=401 if len(shown) == 2 else 200)

    def rotate(name: str) -> None:
        pair = authority.issue(name)
        (tmp_path / "chain").write_bytes(pair.chain)
        (tmp_path / "key").write_bytes(pair.key)

    rotate("first")
    files = StaticCredentials(
        chain=FileSource(tmp_path / "chain", "chain"), key=FileSource(tmp_path / "key", "key")
    )
    transport = HttpTransport(secure.config(files, authority=InlineSource(authority.pem)))
    secure.script = [remember] * 3
    await transport.send(LOOK)
    rotate("second")
    response = await transport.send(LOOK)
    await transport.close()
    assert response.status == 200
    assert shown == ["first", "first", "second"], (
        "a refused certificate is read anew and the request repeated"
    )


@pytest.mark.parametrize(
    ("chain", "key", "words"),
    [
        ("expired", "expired", r"expired on 20\d\d-.* UTC: renew it"),
        ("good", "expired", "does not fit its certificate"),
        ("none", "good", "not a PEM certificate"),
    ],
)
async def test_a_bad_client_certificate_is_refused_before_the_server_does(
    secure: ScriptedServer, authority: Authority, chain: str, key: str, words: str
) -> None:
    pairs = {"expired": authority.issue("me", timedelta(minutes=-1)), "good": authority.issue("me")}
    shown = pairs[chain].chain if chain in pairs else b"none"
    credentials = StaticCredentials(chain=InlineSource(shown), key=InlineSource(pairs[key].key))
    with pytest.raises(ConfigError, match=words):
        await look(secure.config(credentials, authority=InlineSource(authority.pem)))


async def test_an_authority_that_is_none_is_refused(secure: ScriptedServer) -> None:
    with pytest.raises(ConfigError, match="certificate authority is not a PEM certificate"):
        await look(secure.config(authority=InlineSource(b"rubbish")))


async def test_a_plain_server_behind_https_is_told_from_an_untrusted_one() -> None:
    async with serve() as server:
        plain = server.url.replace("http:", "https:")
        with pytest.raises(
            ConnectError, match=r"does not speak TLS with this client .*: check the server's address and port"
        ):
            await look(Config(server=plain, credentials=StaticCredentials()))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_server_that_is_not_there_was_certainly_not_asked() -> None:
    config = Config(server=f"http://127.0.0.1:{free_port()}", credentials=StaticCredentials())
    words = r"cannot be reached \(Connection refused\): check that it runs"
    with pytest.raises(ConnectError, match=words) as caught:
        await look(config)
    assert caught.value.ambiguous is False


async def test_a_connection_that_is_never_taken_times_out_as_not_sent() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        async with asyncio.timeout(60):
            # TLS never starts: the kernel takes the connection, nobody answers the handshake.
            with pytest.raises(ConnectError, match="did not accept a connection in time"):
                await look(Config(server=f"https://127.0.0.1:{port}", credentials=StaticCredentials()), 0.05)


async def test_a_reply_that_never_comes_is_ambiguous() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serve() as server:
        server.script = [reply("ok"), never]
        transport = HttpTransport(server.config())
        await transport.send(Request("GET", "/x", "get", "pods"))  # only the reply is to be late
        with pytest.raises(
            LostReply, match=r"create pods: no answer in 0.1 s; it may have taken effect"
        ) as caught:
            await transport.send(Request("POST", "/x", "create", "pods", body=b"{}", timeout=0.1))
        await transport.close()
    assert caught.value.ambiguous


class Rotating:
    """A token that is good once renewed."""

    def __init__(self) -> None:
        self.token = "old"

    async def current(self) -> Credential:
        return Credential(f"Bearer {self.token}")

    def invalidate(self) -> None:
        self.token = "new"


async def test_a_refused_token_is_renewed_once_and_the_request_repeated() -> None:
    async with serve() as server:
        server.script = [failure(401, "Unauthorized"), reply({}), failure(401, "Unauthorized")]
        async with Client(server.config(Rotating()), retry=NO_RETRY) as client:
            await client.create(PODS, {}, namespace="n", as_type=dict)
            with pytest.raises(Unauthorized, match="renew the credentials"):
                await client.create(PODS, {}, namespace="n", as_type=dict)
    assert [seen.headers["Authorization"] for seen in server.seen] == [
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


async def test_connections_are_kept_and_used_again() -> None:
    async with serve() as server:
        server.script = [reply("ok")] * 3
        async with Client(server.config()) as client:
            for _ in range(3):
                await client.raw("GET", "/x")
        assert len({id(seen.transport) for seen in server.seen}) == 1


async def test_a_stream_torn_off_is_a_lost_reply_and_a_callers_own_error_is_not() -> None:
    async def tear(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"some")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serve() as server:
        server.script = [tear, tear]
        transport = HttpTransport(server.config())
        async with transport.stream(Request("GET", "/x", "watch", "pods", timeout=60)) as stream:
            with pytest.raises(LostReply, match="watch pods: connection lost"):
                assert [chunk async for chunk in stream.chunks()] == ["unreached"]
        with pytest.raises(TimeoutError, match="mine"):
            async with transport.stream(Request("GET", "/x", "watch", "pods", timeout=60)):
                raise TimeoutError("mine")
        await transport.close()


async def test_bad_tokens_never_reach_a_header() -> None:
    with pytest.raises(ConfigError, match="not a token"):
        await StaticCredentials(token=InlineSource(b"a\r\nX-Injected: 1")).current()
    with pytest.raises(ConfigError, match="empty or not a token"):
        await StaticCredentials(token=InlineSource(b"\n")).current()
