"""The HTTP server of the webhooks: passes reviews to the reviewer, and rejects other requests.

Size and time are bounded here, before anything is decoded. Nothing is decompressed: API servers do not
compress, and a compressed body may be an attempt to exhaust memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from http import HTTPStatus
from time import perf_counter
from typing import Protocol

from aiohttp import web
from prometheus_client import Histogram

from grove import timing
from grove.kube.server.bodies import Bodies, Body, BodyTooLarge, TooManyBytes
from grove.kube.server.connection import answering
from grove.kube.server.listener import bounded_runner
from grove.kube.server.refusals import Refusal, Refusals
from grove.webhooks.admission_review import InvalidReview, one_line
from grove.webhooks.computation import Compute, ReviewThread, compute_here, is_large

HEALTH = "/healthz"

reviews = Histogram(
    "grove_admission_seconds",
    "Time from the arrival of an admission review to its response, by webhook and HTTP status",
    ["path", "code"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5),
)


class AnswersReviews(Protocol):
    """Answers the reviews at some paths."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The URL paths that are served."""
        ...

    async def answer(self, path: str, body: bytes, compute: Compute, /) -> bytes:
        """The response to a review. Raises InvalidReview only if the request has no UID to respond to. All
        work on the objects of the review is done by `compute`."""
        ...


def application(refusals: Refusals, *reviewers: AnswersReviews) -> web.Application:
    """The routes of the webhooks and of the health check."""
    application = web.Application()
    by_path = {path: reviewer for reviewer in reviewers for path in reviewer.paths}
    handler = _ReviewHandler(by_path, refusals)
    for path in by_path:
        application.router.add_post(path, handler.answer)
    application.router.add_get(HEALTH, _alive)
    return application


def runner(application: web.Application, refusals: Refusals) -> web.AppRunner:
    """A runner that keeps idle connections longer than API servers do."""
    return bounded_runner(application, refusals, keepalive=timing.REVIEW_KEEPALIVE)


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


class _ReviewHandler:
    """Reviews that are large, or have many values, are computed in a thread, one after another: no other
    review waits for them, and only one of them is decoded in memory."""

    def __init__(self, reviewers: Mapping[str, AnswersReviews], refusals: Refusals) -> None:
        self._reviewers, self._refusals = reviewers, refusals
        self._bodies = Bodies()
        self._large_turn, self._thread = asyncio.Lock(), ReviewThread()

    async def answer(self, request: web.Request) -> web.Response:
        """One review. An invalid request gets an HTTP error; a denied object is a regular response."""
        started = perf_counter()
        reply = await self._reply(request)
        reviews.labels(request.path, str(reply.status)).observe(perf_counter() - started)
        return reply

    async def _reply(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json" or "Content-Encoding" in request.headers:
            why = "send application/json, not compressed"
            return self._refuse(request, Refusal.MALFORMED, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
        try:
            async with self._bodies.reading(request) as body:
                return await self._answer_in_turn(request, body)
        except TimeoutError:
            why = f"the body did not arrive within {timing.REVIEW_BODY_TIMEOUT:g} s, or waited for others"
            return self._refuse(request, Refusal.BODY_TIMEOUT, HTTPStatus.REQUEST_TIMEOUT, why)
        except BodyTooLarge:
            why = f"the body has more than {timing.MAX_REVIEW} bytes"
            return self._refuse(request, Refusal.TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        except TooManyBytes:
            why = f"the bodies of all reviews have more than {timing.REVIEW_BYTES} bytes: try again"
            return self._refuse(request, Refusal.OVERLOADED, HTTPStatus.SERVICE_UNAVAILABLE, why)
        except InvalidReview as problem:
            return self._refuse(request, Refusal.MALFORMED, HTTPStatus.BAD_REQUEST, str(problem))

    async def _answer_in_turn(self, request: web.Request, body: Body) -> web.Response:
        large = is_large(body.content)
        async with self._large_turn if large else nullcontext():
            self._bodies.begin_answer(body)
            with answering(request):
                compute = self._thread.compute if large else compute_here
                reviewer = self._reviewers[request.path]
                answer = await reviewer.answer(request.path, bytes(body.content), compute)
        return web.Response(body=answer, content_type="application/json")

    def _refuse(self, request: web.Request, refusal: Refusal, status: HTTPStatus, why: str) -> web.Response:
        self._refusals.record(refusal, why, request.remote or "")
        reply = web.Response(status=status, text=f"{one_line(why)}\n")
        if status is not HTTPStatus.BAD_REQUEST:
            reply.force_close()  # the rest of the body is not read
        return reply
