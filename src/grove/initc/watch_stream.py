"""One watch on one API server, with nothing but the standard library: lines as they come, until it ends.

HTTP/1.1 as an API server speaks it: a status, headers, a body in chunks that need not end where lines do.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import NamedTuple

_CONNECT = 10.0
_SILENCE = 150.0  # the server sends a bookmark every minute: who is silent for longer is gone
_MAX_MESSAGE = 4096


class WatchInterrupted(Exception):
    """The watch could not begin or has ended; whatever the reason, it is tried again."""


class Server(NamedTuple):
    """An API server, and the folder with what opens it: `token` and `ca.crt`."""

    host: str
    port: int
    service_account: Path

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def lines(server: Server, path: str) -> AsyncIterator[bytes]:
    """The lines of the reply. Always ends with Interrupted, unless whoever reads leaves first."""
    writer = None
    try:
        async with asyncio.timeout(_CONNECT):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=_trust(server))
            writer.write(_request(server, path))
            chunked = await _begin(reader)
        pending = b""
        while piece := await _within(_SILENCE, _piece(reader, chunked)):
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
        raise WatchInterrupted(f"{server.name} cannot be reached ({_words(problem)})") from None
    finally:
        if writer is not None:
            writer.transport.abort()  # a TLS good-bye would wait for an answer
    raise WatchInterrupted("the server ended the watch")


async def _within(seconds: float, work: Awaitable[bytes]) -> bytes:
    """Not `wait_for`, which in Python 3.11 can lose a cancellation that comes with the result."""
    async with asyncio.timeout(seconds):
        return await work


def _trust(server: Server) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.service_account / "ca.crt"))
    # Many clusters sign with authorities that lack what the strict profile of newer Pythons asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _request(server: Server, path: str) -> bytes:
    """The token is read each time: who waits long sees it replaced."""
    token = (server.service_account / "token").read_text().strip()
    return (
        f"GET {path} HTTP/1.1\r\nHost: {server.name}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json\r\nAccept-Encoding: identity\r\nUser-Agent: grove-initc\r\n\r\n"
    ).encode("ascii")


async def _begin(reader: asyncio.StreamReader) -> bool:
    """Read up to the body. Says whether it comes in chunks."""
    status = (await reader.readline()).split(maxsplit=2)
    headers = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip().lower()
    if len(status) < 2:
        raise WatchInterrupted("the server hung up without an answer")
    chunked = headers.get(b"transfer-encoding") == b"chunked"
    if status[1] != b"200":
        raise WatchInterrupted(_refusal(status[1].decode("ascii", "replace"), await _piece(reader, chunked)))
    return chunked


def _refusal(code: str, body: bytes) -> str:
    """The server's own words, if it is one of Kubernetes'."""
    try:
        said = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        said = "no reason given"
    remedies = {"401": "; was the service account made anew?", "403": "; check Role and RoleBinding"}
    return f"the server refuses ({code}): {' '.join(said.split())}{remedies.get(code, '')}"


async def _piece(reader: asyncio.StreamReader, chunked: bool) -> bytes:
    """What comes next of the body; nothing at its end."""
    if not chunked:
        return await reader.read(2**16)
    size = int((await reader.readline()).partition(b";")[0] or b"0", 16)
    piece = await reader.readexactly(size)
    await reader.readline()
    return piece


def _words(problem: BaseException) -> str:
    said = getattr(problem, "strerror", None) or " ".join(str(problem).split())
    return said or type(problem).__name__
