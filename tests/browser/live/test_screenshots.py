"""The pictures of the documentation, on demand: GROVE_UPDATE_SCREENSHOTS=1 make test ARGS="-k pictures"."""

from __future__ import annotations

import os

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.support.demo import NAME, NAMESPACE, SECOND
from tests.browser.support.guard import guarded
from tests.browser.support.page_parts import open_page
from tests.shared import ROOT

LARGEST = 300_000
PICTURES = {
    "map": ("light", "#/map"),
    "waiting": ("light", f"#/waiting/{NAMESPACE}/{SECOND}-2"),
    "workload": ("light", f"#/workloads/{NAMESPACE}/{NAME}"),
    "dark": ("dark", f"#/map?gang={NAMESPACE}/{NAME}-0"),
}

pytestmark = pytest.mark.skipif(
    not os.environ.get("GROVE_UPDATE_SCREENSHOTS"), reason="writes files: set GROVE_UPDATE_SCREENSHOTS=1"
)


async def without_address(page: Page) -> None:
    """Show a name for the cluster: the port of its API server is another one each time."""
    await page.locator(".source").evaluate("(element) => { element.textContent = 'local cluster'; }")


@pytest.mark.parametrize("name", PICTURES)
async def test_pictures_of_docs_are_written(browser: Browser, address, demo, name):
    scheme, link = PICTURES[name]
    context = await browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
    )
    page = await context.new_page()
    async with guarded(page):
        await open_page(page, address, link)
        await expect(page.locator("header .pill")).to_have_text("live")
        if name == "waiting":
            await expect(page.get_by_role("heading", name="Where it is missing")).to_be_visible()
        await without_address(page)
        await page.wait_for_load_state("load")
        file = ROOT / "docs" / f"dashboard-{name}.png"
        await page.screenshot(path=file)
    await context.close()
    assert file.stat().st_size < LARGEST
