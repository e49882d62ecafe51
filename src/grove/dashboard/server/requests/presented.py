"""What a request presents to identify its sender, and the cookie of a session."""

from __future__ import annotations

from aiohttp import hdrs, web

from grove import timing
from grove.dashboard.access.caller import Presented

COOKIE = "__Host-grove-session"
"""The prefix makes browsers accept it only with Secure, for this host and for all paths."""


def presented(request: web.Request) -> Presented:
    """The session and the token of a request. A token in the header comes first: a client has set it."""
    scheme, _, token = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return Presented(request.remote or "", request.cookies.get(COOKIE, ""), bearer)


def set_session(response: web.Response, session: str) -> None:
    """Give the browser the identifier of its session; scripts cannot read it."""
    response.set_cookie(
        COOKIE,
        session,
        max_age=int(timing.SESSION_LIFETIME),
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )


def drop_session(response: web.Response) -> None:
    """Let the browser forget the session."""
    response.set_cookie(COOKIE, "", max_age=0, path="/", secure=True, httponly=True, samesite="Strict")
