"""Sign-in and sign-out."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import msgspec
from aiohttp import web
from msgspec import Struct

from grove import timing
from grove.dashboard.access.caller import SessionAccess
from grove.dashboard.pages.errors import PageError
from grove.dashboard.server.requests.presented import drop_session, presented, set_session


class _SignIn(Struct, forbid_unknown_fields=True):
    token: str


class SessionRoutes:
    """The two POST requests of the page."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        """Begin a session with a token of the cluster."""
        token = (await _read(request)).token.strip()
        session = await self._access.sign_in(token, request.remote or "")
        self._access.sign_out(presented(request).session)  # the page has one session
        reply = web.Response(status=HTTPStatus.NO_CONTENT)
        set_session(reply, session)
        return reply

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        """End the session of the cookie."""
        self._access.sign_out(presented(request).session)
        reply = web.Response(status=HTTPStatus.NO_CONTENT)
        drop_session(reply)
        return reply


async def _read(request: web.Request) -> _SignIn:
    if request.content_type != "application/json":
        raise PageError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the token as application/json")
    try:
        async with asyncio.timeout(timing.SIGN_IN_BODY_TIMEOUT):
            body = await request.read()
    except TimeoutError:
        line = f"the body did not arrive within {timing.SIGN_IN_BODY_TIMEOUT:g} s: send it at once"
        raise PageError(HTTPStatus.REQUEST_TIMEOUT, line) from None
    try:
        return msgspec.json.decode(body, type=_SignIn)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise PageError(HTTPStatus.BAD_REQUEST, 'the body is not {"token": "…"}: send that') from None
