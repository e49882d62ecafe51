"""Server-sent events on one connection. A peer that does not read is dropped."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import msgspec
from aiohttp import hdrs, web

from grove import timing
from grove.kube.server.refusals import Refusal, Refusals

_encode = msgspec.json.Encoder().encode


class PeerGone(Exception):
    """The peer has closed the connection, or does not read."""


class EventStream:
    """An answer that goes on: events, each with its name, data and identifier."""

    def __init__(self, request: web.Request, refusals: Refusals) -> None:
        self._request, self._refusals = request, refusals
        self.response = web.StreamResponse(
            headers={hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
        )

    async def open(self) -> None:
        """Send the head, and how soon the browser comes back. Raises PeerGone."""
        transport = self._request.transport
        connected = transport.get_extra_info("socket") if transport is not None else None
        if connected is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, timing.STREAM_SEND_BUFFER)
        try:
            await self.response.prepare(self._request)
        except ConnectionError:
            raise PeerGone from None
        await self._write(f"retry: {timing.STREAM_RETRY_MS}\n\n".encode())

    async def send(self, name: str, data: Any, identifier: str = "") -> None:
        """Send an event. Raises PeerGone."""
        head = f"event: {name}\n" + (f"id: {identifier}\n" if identifier else "")
        await self._write(b"%sdata: %s\n\n" % (head.encode(), _encode(data)))

    async def _write(self, content: bytes) -> None:
        try:
            async with asyncio.timeout(timing.RESPONSE_TIMEOUT):
                await self.response.write(content)
        except TimeoutError:
            why = f"a stream was not read within {timing.RESPONSE_TIMEOUT:g} s"
            self._refusals.record(Refusal.RESPONSE_TIMEOUT, why, self._request.remote or "")
            if self._request.transport is not None:
                self._request.transport.abort()
            raise PeerGone from None
        except ConnectionError:
            raise PeerGone from None
