"""Modules of the page without the page: imported in an empty document, under the policy of the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Page

import grove.dashboard
from grove.dashboard.server.security_headers import HEADERS
from tests.browser.support.http import serving_folder

STATIC = Path(grove.dashboard.__file__).parent / "static"

Call = Callable[..., Awaitable[Any]]


@pytest_asyncio.fixture(loop_scope="session")
async def call(page: Page) -> AsyncIterator[Call]:
    """The result of a function that gets a module: `await call("router.js", "(router, x) => …", x)`."""
    async with serving_folder(STATIC, HEADERS) as address:
        await page.goto(address)

        async def evaluate(file: str, function: str, argument: object = None) -> Any:
            body = f"async ([file, argument]) => ({function})(await import(file), argument)"
            return await page.evaluate(body, [f"/static/js/{file}", argument])

        yield evaluate
