"""Answers requests that are not HTTP: briefly, and without a part of them.

aiohttp answers with what it could not parse, which may be the header with a token.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from aiohttp import hdrs, web

HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}


class RequestHandler(web.RequestHandler):
    """The protocol of one connection."""

    __slots__ = ()

    @classmethod
    def of(cls, server: web.Server) -> RequestHandler:
        """A protocol of a server, as the server would make it."""
        return cls(server, loop=asyncio.get_running_loop(), **server._kwargs)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that cannot be read, or whose handler has failed."""
        super().handle_error(request, status, exc, message)
        known = HTTPStatus(status)
        reply = web.Response(status=known, text=f"{known.value} {known.phrase}\n", headers=HEADERS)
        reply.headers[hdrs.SERVER] = "grove"
        reply.force_close()
        return reply
