"""The fixtures of this folder: what they must notice."""

from __future__ import annotations

import pytest

from tests.browser.support.guard import allow, guarded
from tests.browser.support.http import serving

STRICT = {"Content-Security-Policy": "default-src 'self'"}


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ("<script>console.error('bad')</script>", "bad"),
        ("<script>throw new Error('thrown')</script>", "thrown"),
        ("<img src='http://other.example/x.png'>", "other.example"),
    ],
)
async def test_guard_fails_on_problem_of_page(browser, html, problem):
    page = await browser.new_page()
    with pytest.raises(AssertionError, match=problem):
        async with serving({"/": html}) as address, guarded(page):
            await page.goto(address, wait_until="load")
    await page.close()


async def test_guard_fails_on_violated_policy(browser):
    page = await browser.new_page()
    with pytest.raises(AssertionError, match="Content Security Policy"):
        async with serving({"/": "<p style='color: red'>a</p>"}, STRICT) as address, guarded(page):
            await page.goto(address, wait_until="load")
    await page.close()


async def test_guard_accepts_allowed_problem(page):
    allow(page, "bad")
    async with serving({"/": "<script>console.error('bad')</script>"}) as address:
        await page.goto(address, wait_until="load")
