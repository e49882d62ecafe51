"""A server that changes its certificate at run time, with real TLS clients on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from grove.kube.certs.certificates import KeyPair, issue_authority, issue_serving
from grove.kube.certs.serving_context import FileServingContext, ServingContext
from grove.kube.errors import ConfigError

NOW = datetime.now(UTC)
AUTHORITY = issue_authority(NOW)
HOSTS = ("localhost", "127.0.0.1")


def certificate() -> KeyPair:
    return issue_serving(AUTHORITY, HOSTS, NOW)


@asynccontextmanager
async def served(serving: ServingContext) -> AsyncIterator[int]:
    runner = web.AppRunner(web.Application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving.context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def served_certificate(port: int, host: str = "localhost") -> bytes:
    """The certificate that the server presents to a client which trusts the authority."""
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    seen = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return bytes(seen)


def der(pair: KeyPair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


@pytest.mark.parametrize("host", HOSTS, ids=["by name", "by address, without SNI"])
async def test_new_certificate_is_served_to_next_connection(host: str) -> None:
    serving = ServingContext()
    first, second = certificate(), certificate()
    serving.use(first)
    async with served(serving) as port:
        assert await served_certificate(port, host) == der(first)
        serving.use(second)
        assert await served_certificate(port, host) == der(second)


async def test_handshake_fails_without_a_certificate() -> None:
    serving = ServingContext()
    assert not serving.ready
    async with served(serving) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await served_certificate(port)
        serving.use(certificate())
        assert serving.ready
        await served_certificate(port)


async def test_invalid_key_pair_is_rejected_and_old_one_stays() -> None:
    serving = ServingContext()
    good = certificate()
    serving.use(good)
    for bad in (KeyPair(b"nonsense", b"nonsense"), KeyPair(good.certificate, certificate().key)):
        with pytest.raises(ConfigError, match="give a PEM pair"):
            serving.use(bad)
    async with served(serving) as port:
        assert await served_certificate(port) == der(good)


async def test_replaced_certificate_files_are_served(tmp_path: Path) -> None:
    def mount(pair: KeyPair, generation: str) -> None:
        """Replace the files as the kubelet does: a new directory, then a link that points to it."""
        (tmp_path / generation).mkdir()
        (tmp_path / generation / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / generation / "tls.key").write_bytes(pair.key)
        link = tmp_path / "next"
        link.symlink_to(generation)
        link.rename(tmp_path / "current")

    first, second = certificate(), certificate()
    mount(first, "1")
    serving = FileServingContext(tmp_path / "current/tls.crt", tmp_path / "current/tls.key")
    async with served(serving) as port:
        assert await served_certificate(port) == der(first)
        mount(second, "2")
        assert await served_certificate(port) == der(second)
        (tmp_path / "2" / "tls.key").write_bytes(b"half")
        assert await served_certificate(port) == der(second)
        (tmp_path / "2" / "tls.key").unlink()
        assert await served_certificate(port) == der(second)


def test_missing_certificate_files_are_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tls\.crt"):
        FileServingContext(tmp_path / "tls.crt", tmp_path / "tls.key")
