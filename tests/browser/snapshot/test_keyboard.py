"""Everything without a mouse."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.browser.support.page_parts import open_page

FOCUSED = "() => [document.activeElement.tagName, document.activeElement.getAttribute('role') ?? '']"


async def tab_to(page: Page, role: str) -> None:
    """Press Tab until an element of a role has the focus."""
    for _ in range(40):
        await page.keyboard.press("Tab")
        if (await page.evaluate(FOCUSED))[1] == role:
            return
    raise AssertionError(f"no {role} in the tab order")


async def test_first_tab_offers_to_skip_to_content(page, address):
    await open_page(page, address, "#/map")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#content")).to_be_focused()
    await expect(page).not_to_have_url(re.compile("#content"))


async def test_tab_order_follows_the_page(page, address):
    await open_page(page, address, "#/map")
    order = []
    for _ in range(14):
        await page.keyboard.press("Tab")
        box = await page.evaluate(
            "() => { const b = document.activeElement.getBoundingClientRect(); return [b.top, b.left]; }"
        )
        order.append(box)
        assert await page.evaluate("() => document.activeElement !== document.body")
    header = [left for top, left in order[1:] if top < 50]
    assert header == sorted(header), "the header is passed from left to right"


async def test_arrows_go_from_host_to_host(page, address):
    await open_page(page, address, "#/map")
    await tab_to(page, "application")
    spoken = page.locator(".map-main [aria-live]")
    await expect(spoken).to_contain_text("z0-b0-r0-h0")
    await page.keyboard.press("ArrowDown")
    await expect(spoken).to_contain_text("z0-b0-r0-h1")
    await page.keyboard.press("End")
    await expect(spoken).to_contain_text("z0-b1-r3-h7")
    await page.keyboard.press("Home")
    await page.keyboard.press("ArrowRight")
    await expect(spoken).not_to_contain_text("z0-b0-r0-h0")


async def test_enter_selects_and_escape_clears(page, address):
    await open_page(page, address, "#/map")
    await tab_to(page, "application")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("node=z0-b0-r0-h1"))
    await expect(page.get_by_role("region", name="Selection")).to_contain_text("z0-b0-r0-h1")
    await page.keyboard.press("Escape")
    await expect(page).not_to_have_url(re.compile("node="))


async def test_focus_is_always_visible(page, address):
    await open_page(page, address, "#/map")
    shown = """() => {
      const style = getComputedStyle(document.activeElement);
      return style.outlineStyle !== "none" || style.boxShadow !== "none";
    }"""
    for _ in range(12):
        await page.keyboard.press("Tab")
        assert await page.evaluate(shown), await page.evaluate(
            "() => document.activeElement.outerHTML.slice(0, 200)"
        )


async def test_shortcuts_are_listed_and_closed_by_escape(page, address):
    await open_page(page, address, "#/map")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()


async def test_tree_opens_and_closes_by_arrows(page, address):
    await open_page(page, address, "#/workloads/inference/serve-00")
    first = page.get_by_role("treeitem").first
    await first.focus()
    before = await page.get_by_role("treeitem").count()
    await page.keyboard.press("ArrowLeft")
    await expect(first).to_have_attribute("aria-expanded", "false")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("treeitem")).to_have_count(before)
    await page.keyboard.press("ArrowDown")
    await expect(first).not_to_be_focused()


async def test_table_view_has_hosts_of_a_rack(page, address):
    await open_page(page, address, "#/map")
    await page.get_by_role("button", name="Table", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("view=table"))
    await page.get_by_role("button", name="Hosts of z0-b0-r0").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="z0-b0-r0-h7", exact=True)).to_be_visible()
