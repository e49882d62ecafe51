"""Light and dark, narrow and wide, and what axe finds on every page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from tests.browser.support.guard import guarded
from tests.browser.support.page_parts import open_page

LINKS = [
    "#/map",
    "#/map?view=table",
    "#/map?node=z0-b0-r0-h0&gang=training/train-00-0",
    "#/waiting",
    "#/waiting/research/too-large-0",
    "#/workloads",
    "#/workloads/inference/serve-00",
    "#/workloads/inference/serve-00?object=podcliqueset/serve-00",
    "#/events",
]
SIZES = {"narrow": {"width": 390, "height": 844}, "wide": {"width": 1440, "height": 900}}
BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"


def brightness(colour: str) -> float:
    return sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) / 3


@pytest_asyncio.fixture(loop_scope="session", params=["light", "dark"])
async def coloured(request: pytest.FixtureRequest, browser: Browser) -> AsyncIterator[Page]:
    """A page on a system with light or dark colours."""
    context = await browser.new_context(
        viewport=SIZES["wide"], color_scheme=request.param, reduced_motion="reduce"
    )
    page = await context.new_page()
    async with guarded(page):
        yield page
    await context.close()


async def test_axe_finds_nothing(coloured, address):
    for link in LINKS:
        await open_page(coloured, address, link)
        found = await Axe().run(coloured)
        assert found.violations_count == 0, f"{link}\n{found.generate_report()}"


async def test_axe_finds_nothing_on_narrow_screen(page, address):
    await page.set_viewport_size(SIZES["narrow"])
    for link in LINKS:
        await open_page(page, address, link)
        found = await Axe().run(page)
        assert found.violations_count == 0, f"{link}\n{found.generate_report()}"


@pytest.mark.parametrize("width", [320, 390, 768])
async def test_narrow_screen_does_not_scroll_sideways(page, address, width):
    await page.set_viewport_size({"width": width, "height": 844})
    for link in LINKS:
        await open_page(page, address, link)
        beyond = await page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
        assert beyond <= 0, f"{link}: {beyond} px"


async def test_colours_follow_the_system_until_chosen(page, address):
    await page.emulate_media(color_scheme="light")
    await open_page(page, address, "#/map")
    assert brightness(await page.evaluate(BACKGROUND)) > 200
    await page.emulate_media(color_scheme="dark")
    assert brightness(await page.evaluate(BACKGROUND)) < 60
    button = page.get_by_role("button", name="Colours:")
    await button.click()
    await expect(button).to_have_attribute("aria-label", "Colours: light")
    assert brightness(await page.evaluate(BACKGROUND)) > 200
    await page.reload()
    await expect(button).to_have_attribute("aria-label", "Colours: light")
    assert brightness(await page.evaluate(BACKGROUND)) > 200
