"""Requests that are refused because of their sender: each is answered with its status and one line."""

from __future__ import annotations

import math
from http import HTTPStatus

from grove.dashboard.pages.errors import PageError


class NotSignedIn(PageError):
    """There is no valid session and no valid token."""

    def __init__(self, message: str = "sign in with a token of the cluster") -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, message)


class ReviewUnavailable(PageError):
    """The API server does not say what a user may see. Nothing is shown then."""

    def __init__(self, problem: str) -> None:
        line = f"the API server does not review tokens and rights ({problem}): try again later"
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, line)


class TooMany(PageError):
    """The sender is answered again after some seconds."""

    def __init__(self, what: str, seconds: float = 1.0) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, f"too many {what}: try again in {self.retry_after} s")
