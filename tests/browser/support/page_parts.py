"""Parts of the page that several tests use."""

from __future__ import annotations

from playwright.async_api import Page, expect

ROWS = """(table) => [...table.tBodies[0].rows].map((row) =>
  [...row.cells].map((cell) => cell.innerText.trim()))"""
"""The texts of a table."""
_MARK = "groveTestMark"


async def watch_reloads(page: Page) -> None:
    """Mark the document: a new one does not have the mark."""
    await page.evaluate("(mark) => { window[mark] = true; }", _MARK)


async def was_reloaded(page: Page) -> bool:
    """Whether the page was loaded again since it was marked."""
    return not await page.evaluate("(mark) => window[mark] === true", _MARK)


_DRAWN = """async (element) => {
  const { mapOf } = await import("/static/js/map/page.js");
  while (!(mapOf(element)?.view.frameTime > 0)) await new Promise(requestAnimationFrame);
}"""


async def map_is_drawn(page: Page) -> None:
    """Wait for the first frame of the map."""
    await page.locator(".map-scroll").evaluate(_DRAWN)


async def open_page(page: Page, address: str, link: str) -> None:
    """Open a link, and wait for its page."""
    await page.goto(f"{address}{link}")
    await expect(page.get_by_role("heading", level=1)).to_be_attached()
    await expect(page.locator(".loading, .skeleton")).to_have_count(0)
    if link.startswith("#/map") and "table" not in link:
        await map_is_drawn(page)
