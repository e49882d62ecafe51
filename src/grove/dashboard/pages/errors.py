"""The error that a request to the dashboard is answered with."""

from __future__ import annotations

from http import HTTPStatus


class PageError(Exception):
    """The page cannot be answered: an HTTP status, and one line that says what is wrong and the remedy."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message
