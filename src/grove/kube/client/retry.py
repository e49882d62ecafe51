"""Decides whether a request is retried, and after how long. Only safe repetitions are.

A read may always be repeated; a write only if the server certainly did not do it: no connection could be
opened, or it answered 429. Every other failure of a write is for the caller, who can read the object first.
"""

from __future__ import annotations

import random

from msgspec import Struct

from grove import timing
from grove.kube.client.transport import Request
from grove.kube.errors import ApiError, ConnectError, KubeError, LostReply, ServerError, TooManyRequests


class Backoff(Struct, frozen=True):
    """Exponential pauses with jitter, so that many clients do not retry at the same time."""

    first: float = timing.RETRY_BACKOFF[0]
    longest: float = timing.RETRY_BACKOFF[1]
    factor: float = 2.0

    def pause(self, attempt: int, rng: random.Random) -> float:
        """The pause after the given failed attempt (0 is the first): between half and all of its span."""
        span = min(self.longest, self.first * self.factor ** min(attempt, 32))
        return span * (0.5 + rng.random() / 2)


class RetryPolicy(Struct, frozen=True):
    """How many attempts a request has, and the pauses between them."""

    attempts: int = timing.RETRY_ATTEMPTS
    backoff: Backoff = Backoff()
    longest_wait: float = timing.RETRY_LONGEST_WAIT

    def wait(self, request: Request, error: KubeError, attempt: int, rng: random.Random) -> float | None:
        """Seconds to wait before the next attempt, or None if the error is to be raised."""
        if attempt + 1 >= self.attempts or not is_safe(request, error):
            return None
        pause = error.retry_after if isinstance(error, ApiError) else None
        if pause is not None:
            # The jitter is added: the server asked for no earlier request.
            return pause + self.backoff.first * rng.random() if pause <= self.longest_wait else None
        return self.backoff.pause(attempt, rng)


NO_RETRY = RetryPolicy(attempts=1)


def is_safe(request: Request, error: KubeError) -> bool:
    """Whether a repetition of the request cannot take effect twice."""
    if isinstance(error, ConnectError | TooManyRequests):
        return True
    return not request.is_write and isinstance(error, LostReply | ServerError)
