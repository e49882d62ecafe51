"""One watch on one API server, with the standard library only: yields lines as they arrive, until it ends.

Reads HTTP/1.1 as an API server sends it: a status, headers, and a body in chunks whose ends need not be ends
of lines. `ready_wait` decides when to start the next watch.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import NamedTuple

from grove import timing


class WatchInterrupted(Exception):
    """The watch could not start or has ended; whatever the reason, it is started again."""


class Server(NamedTuple):
    """An API server, and the folder with the credentials for it: `token` and `ca.crt`."""

    host: str
    port: int
    service_account: Path

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def lines(server: Server, path: str) -> AsyncIterator[bytes]:
    """The lines of the reply. Always ends with WatchInterrupted, unless the caller stops reading first."""
    writer = None
    try:
        async with asyncio.timeout(timing.CONNECT_TIMEOUT):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=_trust(server))
            writer.write(_request(server, path))
            chunked = await _read_head(reader)
        pending = b""
        while piece := await _within(timing.WATCH_IDLE_TIMEOUT, _read_body(reader, chunked)):
            *whole, pending = (pending + piece).split(b"\n")
            for line in whole:
                if line:
                    yield line
    except TimeoutError:
        raise WatchInterrupted(f"{server.name} does not answer") from None
    except ssl.SSLError as problem:
        why = getattr(problem, "verify_message", "") or problem.reason or str(problem)
        raise WatchInterrupted(f"{server.name} cannot be trusted ({why})") from None
    except (OSError, EOFError, ValueError) as problem:
        raise WatchInterrupted(f"{server.name} cannot be reached ({_text(problem)})") from None
    finally:
        if writer is not None:
            writer.transport.abort()  # a TLS close_notify would wait for an answer
    raise WatchInterrupted("the server ended the watch")


async def _within(seconds: float, work: Awaitable[bytes]) -> bytes:
    """Awaits with a timeout. Not `wait_for`: in Python 3.11 it can lose a cancellation that arrives with the
    result."""
    async with asyncio.timeout(seconds):
        return await work


def _trust(server: Server) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.service_account / "ca.crt"))
    # The certificate authorities of many clusters lack extensions that newer Pythons require by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _request(server: Server, path: str) -> bytes:
    """The request. The token is read for each watch, since it is rotated while the pod waits."""
    token = (server.service_account / "token").read_text().strip()
    return (
        f"GET {path} HTTP/1.1\r\nHost: {server.name}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json\r\nAccept-Encoding: identity\r\nUser-Agent: grove-initc\r\n\r\n"
    ).encode("ascii")


async def _read_head(reader: asyncio.StreamReader) -> bool:
    """Reads status and headers. Returns whether the body is chunked."""
    status = (await reader.readline()).split(maxsplit=2)
    headers = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip().lower()
    if len(status) < 2:
        raise WatchInterrupted("the server closed the connection without an answer")
    chunked = headers.get(b"transfer-encoding") == b"chunked"
    if status[1] != b"200":
        body = await _read_body(reader, chunked)
        raise WatchInterrupted(_rejection(status[1].decode("ascii", "replace"), body))
    return chunked


def _rejection(code: str, body: bytes) -> str:
    """Why the server rejected the watch: the message of its Status, if the body is one, and a remedy."""
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = "no reason given"
    remedies = {
        "401": "; check whether the service account was deleted and created again",
        "403": "; check Role and RoleBinding",
    }
    return f"the server refuses ({code}): {' '.join(message.split())}{remedies.get(code, '')}"


async def _read_body(reader: asyncio.StreamReader, chunked: bool) -> bytes:
    """The next bytes of the body; empty at its end."""
    if not chunked:
        return await reader.read(2**16)
    size = int((await reader.readline()).partition(b";")[0] or b"0", 16)
    piece = await reader.readexactly(size)
    await reader.readline()
    return piece


def _text(problem: BaseException) -> str:
    text = getattr(problem, "strerror", None) or " ".join(str(problem).split())
    return text or type(problem).__name__
