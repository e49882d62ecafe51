"""What no page may do: log errors, violate its content security policy, or ask other hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import ConsoleMessage, Page, Request

_OWN_HOSTS = ("127.0.0.1", "localhost", "::1")
_NO_HOST = ("about", "blob", "data")
_ALLOWED = "allowed_problems"


def allow(page: Page, text: str) -> None:
    """Accept problems with this text from now on: the test causes them."""
    getattr(page, _ALLOWED).append(text)


@asynccontextmanager
async def guarded(page: Page) -> AsyncIterator[None]:
    """Collect what a page does wrong, and fail at the end."""
    problems: list[str] = []
    allowed: list[str] = []
    setattr(page, _ALLOWED, allowed)

    def add(problem: str) -> None:
        if not any(text in problem for text in allowed):
            problems.append(problem)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            add(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def on_request(request: Request) -> None:
        found = urlsplit(request.url)
        if found.scheme not in _NO_HOST and found.hostname not in _OWN_HOSTS:
            add(f"request to another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda problem: add(f"exception: {problem}"))
    page.on("request", on_request)
    yield
    assert not problems, "\n".join(problems)
