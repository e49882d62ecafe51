"""Fixtures for tests in a real browser: one process of Chromium a worker, a context and a page a test.

All tests of this folder run on the loop of the session, to which the browser belongs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.support.guard import guarded
from tools import browser as chromium

HERE = Path(__file__).parent
expect.set_options(timeout=30_000)  # milliseconds: the machine may be busy with other tests
SIZE = {"width": 1440, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder on one loop."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium. Without one, tests are skipped, but they fail in CI."""
    program = chromium.on_path()
    async with async_playwright() as playwright:
        program = program or Path(playwright.chromium.executable_path)
        if not os.access(program, os.X_OK):
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(chromium.MISSING)
        running = await playwright.chromium.launch(executable_path=program)
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in a context of its own. An error in the console, a violation of the content security policy or
    a request to another host fails the test."""
    context = await browser.new_context(viewport=SIZE, reduced_motion="reduce")
    page = await context.new_page()
    async with guarded(page):
        yield page
    await context.close()
