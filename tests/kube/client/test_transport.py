"""The HTTP transport: TLS, credentials, timeouts, and errors of one line that name the remedy."""

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

GET_VERSION = Request("GET", "/version", "get")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def get_version(config: Config, connect_timeout: float = 60) -> None:
    transport = HttpTransport(config, connect_timeout=connect_timeout)
    try:
        assert (await transport.send(GET_VERSION)).status == 200
    finally:
        await transport.close()


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[ScriptedServer]:
    async with serve(authority.server_context(authority.issue("real.name"))) as server:
        yield server


async def test_server_certificate_is_verified(secure: ScriptedServer, authority: Authority) -> None:
    secure.script = [reply("ok")]
    await get_version(secure.config(authority=InlineSource(authority.pem)))
    with pytest.raises(ConnectError, match=r"cannot be trusted .*: set the cluster's certificate-authority"):
        await get_version(secure.config(authority=InlineSource(Authority().pem)))
    with pytest.raises(ConnectError, match="cannot be trusted"):
        await get_version(secure.config())


async def test_insecure_trusts_unknown_authority(secure: ScriptedServer) -> None:
    secure.script = [reply("ok")]
    await get_version(secure.config(insecure=True))


async def test_certificate_is_checked_for_tls_server_name(
    secure: ScriptedServer, authority: Authority
) -> None:
    secure.script = [reply("ok")]
    await get_version(secure.config(authority=InlineSource(authority.pem), server_name="real.name"))
    with pytest.raises(
        ConnectError, match=r"for another name .*: correct the address or set tls-server-name"
    ):
        await get_version(secure.config(authority=InlineSource(authority.pem), server_name="other.name"))


async def test_expired_server_certificate_error_names_clock(authority: Authority) -> None:
    async with serve(authority.server_context(authority.issue("a", timedelta(hours=-1)))) as server:
        with pytest.raises(ConnectError, match="has expired: renew it, or check this machine's clock"):
            await get_version(server.config(authority=InlineSource(authority.pem)))


async def test_client_certificate_is_reloaded_after_401(
    secure: ScriptedServer, authority: Authority, tmp_path: Path
) -> None:
    presented = []

    async def remember(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        presented.append(subject[0][0][1])
        return web.Response(status=401 if len(presented) == 2 else 200)

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
    await transport.send(GET_VERSION)
    rotate("second")
    response = await transport.send(GET_VERSION)
    await transport.close()
    assert response.status == 200
    assert presented == ["first", "first", "second"], (
        "after a 401 the certificate is read again and the request repeated"
    )


@pytest.mark.parametrize(
    ("chain", "key", "message"),
    [
        ("expired", "expired", r"expired on 20\d\d-.* UTC: renew it"),
        ("good", "expired", "does not match its certificate"),
        ("none", "good", "not a PEM certificate"),
    ],
)
async def test_invalid_client_certificate_is_a_config_error(
    secure: ScriptedServer, authority: Authority, chain: str, key: str, message: str
) -> None:
    pairs = {"expired": authority.issue("me", timedelta(minutes=-1)), "good": authority.issue("me")}
    presented = pairs[chain].chain if chain in pairs else b"none"
    credentials = StaticCredentials(chain=InlineSource(presented), key=InlineSource(pairs[key].key))
    with pytest.raises(ConfigError, match=message):
        await get_version(secure.config(credentials, authority=InlineSource(authority.pem)))


async def test_invalid_authority_is_a_config_error(secure: ScriptedServer) -> None:
    with pytest.raises(ConfigError, match="certificate authority is not a PEM certificate"):
        await get_version(secure.config(authority=InlineSource(b"rubbish")))


async def test_https_to_plain_server_is_a_connect_error() -> None:
    async with serve() as server:
        plain = server.url.replace("http:", "https:")
        with pytest.raises(
            ConnectError, match=r"does not speak TLS with this client .*: check the server's address and port"
        ):
            await get_version(Config(server=plain, credentials=StaticCredentials()))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_unreachable_server_is_not_ambiguous() -> None:
    config = Config(server=f"http://127.0.0.1:{free_port()}", credentials=StaticCredentials())
    message = r"cannot be reached \(Connection refused\): check that it runs"
    with pytest.raises(ConnectError, match=message) as caught:
        await get_version(config)
    assert caught.value.ambiguous is False


async def test_connect_timeout_is_a_connect_error() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        port = silent.getsockname()[1]
        async with asyncio.timeout(60):
            # The kernel accepts the connection, and no process answers the TLS handshake.
            with pytest.raises(ConnectError, match="did not accept a connection in time"):
                await get_version(
                    Config(server=f"https://127.0.0.1:{port}", credentials=StaticCredentials()), 0.05
                )


async def test_missing_reply_is_ambiguous() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serve() as server:
        server.script = [reply("ok"), never]
        transport = HttpTransport(server.config())
        await transport.send(
            Request("GET", "/x", "get", "pods")
        )  # opens the connection, so that only the reply is late
        with pytest.raises(
            LostReply, match=r"create pods: no answer in 0.1 s; it may have taken effect"
        ) as caught:
            await transport.send(Request("POST", "/x", "create", "pods", body=b"{}", timeout=0.1))
        await transport.close()
    assert caught.value.ambiguous


class RotatingToken:
    """A token that is valid after `invalidate`."""

    def __init__(self) -> None:
        self.token = "old"

    async def current(self) -> Credential:
        return Credential(f"Bearer {self.token}")

    def invalidate(self) -> None:
        self.token = "new"


async def test_rejected_token_is_renewed_and_request_repeated() -> None:
    async with serve() as server:
        server.script = [failure(401, "Unauthorized"), reply({}), failure(401, "Unauthorized")]
        async with Client(server.config(RotatingToken()), retry=NO_RETRY) as client:
            await client.create(PODS, {}, namespace="n", as_type=dict)
            with pytest.raises(Unauthorized, match="renew the credentials"):
                await client.create(PODS, {}, namespace="n", as_type=dict)
    assert [seen.headers["Authorization"] for seen in server.seen] == [
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


async def test_connections_are_reused() -> None:
    async with serve() as server:
        server.script = [reply("ok")] * 3
        async with Client(server.config()) as client:
            for _ in range(3):
                await client.raw("GET", "/x")
        assert len({id(seen.transport) for seen in server.seen}) == 1


async def test_broken_stream_is_a_lost_reply() -> None:
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


async def test_invalid_token_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="not a token"):
        await StaticCredentials(token=InlineSource(b"a\r\nX-Injected: 1")).current()
    with pytest.raises(ConfigError, match="empty or not a token"):
        await StaticCredentials(token=InlineSource(b"\n")).current()
