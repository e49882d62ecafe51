"""Counts what our HTTP servers refuse, and logs it at a bounded rate, in one line and without a traceback.

Any pod of the cluster may be able to connect to a server. So what it sends must not fill the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError
from prometheus_client import Counter

from grove import timing
from grove.logger import get_logger

log = get_logger("grove.kube.server")

refused = Counter(
    "grove_http_refused_total",
    "Connections and requests that an HTTP server of the operator refused, by server and reason",
    ["server", "reason"],
)


class Refusal(StrEnum):
    """Why a connection is closed, or a request is not answered."""

    CONNECTIONS = "connections"
    """The server or the peer has too many connections."""
    HANDSHAKE = "handshake"
    """The TLS handshake failed, or took too long."""
    HEAD_TIMEOUT = "head-timeout"
    """The head of a request did not arrive in time."""
    BODY_TIMEOUT = "body-timeout"
    """The body of a request did not arrive in time."""
    RESPONSE_TIMEOUT = "response-timeout"
    """The peer did not read the response."""
    TOO_LARGE = "too-large"
    """The body is larger than any review."""
    OVERLOADED = "overloaded"
    """There are too many bytes of bodies in memory."""
    MALFORMED = "malformed"
    """It is not HTTP, not the media type, or not a review."""
    UNAUTHORIZED = "unauthorized"
    """The request has no token of a subject that may read metrics."""


class Refusals:
    """The refusals of one server. The first of a kind is logged, then one line an interval with how many."""

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._logged_at: dict[Refusal, float] = {}
        self._unlogged: dict[Refusal, int] = {}

    def record(self, refusal: Refusal, why: str, peer: str = "") -> None:
        """Count a refusal, and log it if none of its kind was logged within the interval."""
        refused.labels(self._server, refusal).inc()
        now = self._clock()
        last = self._logged_at.get(refusal)
        if last is not None and now - last < timing.REFUSAL_LOG_INTERVAL:
            self._unlogged[refusal] = self._unlogged.get(refusal, 0) + 1
            return
        self._logged_at[refusal] = now
        before = self._unlogged.pop(refusal, 0)
        more = {"unlogged": before} if before else {}
        log.warning(
            "refused", key=self._server, action=f"refuse: {refusal}", reason=one_line(why), peer=peer, **more
        )


class RequestLogger(logging.Logger):
    """The logger of one server of aiohttp: what a peer did wrong is a refusal, everything else an error."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__("grove.kube.server")
        self._refusals = refusals

    def exception(self, msg: object, *args: object, **more: Any) -> None:
        """Called by aiohttp if a request cannot be parsed, and if a handler fails."""
        problem = more.get("exc_info")
        if not self._is_refusal(problem, args):
            log.error("request failed", action="answer 500", reason=str(msg) % args, exc_info=problem)

    def debug(self, _msg: object, *args: object, **more: Any) -> None:  # type: ignore[override]
        """Called by aiohttp if the first request of a connection is not HTTP."""
        self._is_refusal(more.get("exc_info"), args)

    def _is_refusal(self, problem: object, args: tuple[object, ...]) -> bool:
        if isinstance(problem, ConnectionError):
            return True  # the peer closed the connection: nothing to answer
        if not isinstance(problem, HttpProcessingError | RequestPayloadError):
            return False
        text = getattr(problem, "message", "") or str(problem) or type(problem).__name__
        why = text.partition(":")[0]  # what follows is of the request, perhaps the header with a token
        self._refusals.record(Refusal.MALFORMED, why, str(args[0]) if args else "")
        return True


def one_line(text: str) -> str:
    """Text of a peer for the log: short, and without line ends and control sequences."""
    shown = " ".join(text.split())[: timing.REFUSAL_SHOWN]
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in shown)
