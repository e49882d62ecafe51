"""The HTTP server of the webhooks: passes reviews to the reviewer, and rejects other requests.

Size and time are bounded here, before anything is decoded. Nothing is decompressed: API servers do not
compress, and a compressed body may be an attempt to exhaust memory.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from http import HTTPStatus
from time import perf_counter

from aiohttp import web

from grove import timing
from grove.webhooks import metrics
from grove.webhooks.admission_review import InvalidReview, one_line
from grove.webhooks.reviewer import Reviewer

HEALTH = "/healthz"


def application(reviewer: Reviewer) -> web.Application:
    """The routes of the webhooks and of the health check."""
    application = web.Application(client_max_size=timing.MAX_REVIEW)
    handler = _ReviewHandler(reviewer)
    for path in reviewer.paths:
        application.router.add_post(path, handler.answer)
    application.router.add_get(HEALTH, _alive)
    return application


def runner(application: web.Application) -> web.AppRunner:
    """A runner that keeps connections alive and never decompresses bodies."""
    return web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=timing.SERVER_STOP_TIMEOUT,
        keepalive_timeout=timing.REVIEW_KEEPALIVE,
        auto_decompress=False,
        lingering_time=1.0,
    )


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


class _ReviewHandler:
    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer
        self._large_bodies = asyncio.Semaphore(timing.LARGE_REVIEWS_AT_ONCE)

    async def answer(self, request: web.Request) -> web.Response:
        """One review. An invalid request gets an HTTP error; a denied object is a regular response."""
        started = perf_counter()
        reply = await self._reply(request)
        metrics.reviews.labels(request.path, str(reply.status)).observe(perf_counter() - started)
        return reply

    async def _reply(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json" or "Content-Encoding" in request.headers:
            return _refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json, not compressed")
        large = request.content_length is None or request.content_length > timing.SMALL_REVIEW
        try:
            async with (
                asyncio.timeout(timing.REVIEW_BODY_TIMEOUT),
                self._large_bodies if large else nullcontext(),
            ):
                body = await request.read()
        except TimeoutError:
            return _refuse(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {timing.REVIEW_BODY_TIMEOUT:g} s"
            )
        except web.HTTPRequestEntityTooLarge:
            return _refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {timing.MAX_REVIEW} bytes"
            )
        try:
            answer = await self._reviewer.answer(request.path, body)
        except InvalidReview as problem:
            return _refuse(HTTPStatus.BAD_REQUEST, str(problem))
        return web.Response(body=answer, content_type="application/json")


def _refuse(status: HTTPStatus, why: str) -> web.Response:
    reply = web.Response(status=status, text=f"{one_line(why)}\n")
    if status is not HTTPStatus.BAD_REQUEST:
        reply.force_close()  # the rest of the body is not read
    return reply
