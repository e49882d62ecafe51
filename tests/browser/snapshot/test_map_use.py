"""The map in use: keys of the whole page, domains, filters and reservations."""

from __future__ import annotations

import re

from playwright.async_api import Page, Route, expect

from tests.browser.support.page_parts import map_is_drawn, open_page

HOST = "z0-b0-r0-h0"
POINT = """async (element, wanted) => {
  const { mapOf } = await import("/static/js/map/page.js");
  const { view } = mapOf(element);
  const area = element.getBoundingClientRect();
  for (let y = area.top + 2; y < area.bottom; y += 3)
    for (let x = area.left + 2; x < area.right; x += 3) {
      const { box, host, title, cell } = view.find(x, y);
      if (host === null ? title && box.name === wanted : host.name === wanted && cell < 0) return [x, y];
    }
  return null;
}"""
"""A point on the title of a domain, or on a host beside its cells."""


async def click_on(page: Page, name: str) -> None:
    area = page.locator(".map-scroll")
    x, y = await area.evaluate(POINT, name)
    await page.mouse.move(x, y)
    await expect(area).to_have_css("cursor", "pointer")
    await page.mouse.click(x, y)


async def reserve(page: Page) -> None:
    """Let a gang hold a host that another one uses; its name is the first of all."""

    async def with_reservation(route: Route) -> None:
        answer = await route.fetch()
        picture = await answer.json()
        uses = [("aaa/waits-0", True), ("training/train-00-0", False)]
        picture["nodes"][HOST] |= {
            "gpus": 8,
            "uses": [{"gang": gang, "gpus": 8, "pods": 1, "reserved": held} for gang, held in uses],
        }
        picture["gangs"]["aaa/waits-0"] = {"set": "aaa/waits", "pods": 1, "gpus": 8}
        await route.fulfill(response=answer, json=picture)

    await page.route("**/api/picture", with_reservation)


async def test_keys_work_on_the_whole_page_of_the_map(page, address):
    await open_page(page, address, f"#/map?node={HOST}")
    await page.get_by_role("button", name="Table", exact=True).focus()
    await page.keyboard.press("+")
    await expect(page).to_have_url(re.compile("zoom=18"))
    await page.keyboard.press("-")
    await expect(page).to_have_url(re.compile("zoom=14"))
    await page.keyboard.press("/")
    await page.keyboard.type("a-+b")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(re.compile(f"node={HOST}.*zoom=14"))
    await page.keyboard.press("Escape")
    await expect(page).not_to_have_url(re.compile("node="))


async def test_search_selects_its_old_text_and_escape_clears_it(page, address):
    await open_page(page, address, "#/events")
    search = page.get_by_role("combobox", name=re.compile("^Search"))
    await page.keyboard.press("/")
    await page.keyboard.type("first")
    await page.get_by_role("link", name="Waiting").first.focus()
    await page.keyboard.press("/")
    await page.keyboard.type("second")
    await expect(search).to_have_value("second")
    await page.keyboard.press("Escape")
    await expect(search).to_have_value("")
    await expect(search).to_be_focused()


async def test_title_of_domain_selects_it(page, address):
    await open_page(page, address, "#/map?level=block&zoom=14")
    await click_on(page, "z0-b0")
    selection = page.get_by_role("region", name="Selection")
    await expect(selection.get_by_role("heading", name="z0-b0")).to_be_visible()
    await expect(page).to_have_url(re.compile("level=block.*domain=block/z0/z0-b0$"))


async def test_search_for_domain_keeps_all_levels(page, address):
    await open_page(page, address, "#/map")
    await page.keyboard.press("/")
    await page.keyboard.type("z0-b1")
    await page.locator("#search-hits [role=option]").filter(has_text="block").first.click()
    await expect(page.get_by_role("region", name="Selection").get_by_role("heading")).to_have_text("z0-b1")
    await expect(page.get_by_label("Level")).to_have_value("")


async def test_enter_and_click_select_the_same(page, address):
    await open_page(page, address, "#/map?zoom=14")
    await click_on(page, "z0-b0-r3-h0")
    clicked = re.compile("node=z0-b0-r3-h0&gang=training/train-00-0")
    await expect(page).to_have_url(clicked)
    await page.keyboard.press("Escape")
    await expect(page).not_to_have_url(clicked)
    await page.locator(".map-scroll").focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(clicked)


async def test_tooltip_of_keyboard_ends_with_escape_and_blur(page, address):
    await open_page(page, address, "#/map")
    tooltip = page.locator(".tooltip")
    for end in ("Escape", "Tab"):
        await page.locator(".map-scroll").focus()
        await page.keyboard.press("ArrowDown")
        await expect(tooltip).to_be_visible()
        await page.keyboard.press(end)
        await expect(tooltip).to_be_hidden()


async def test_reservation_of_a_full_host_is_not_use(page, address):
    await reserve(page)
    await open_page(page, address, f"#/map?zoom=14&node={HOST}")
    selection = page.get_by_role("region", name="Selection")
    await expect(selection).to_contain_text("8 GPUs: 8 used")
    await expect(selection).to_contain_text("8 GPUs reserved for it when free")
    await expect(page.locator(".fact-reserved")).to_have_text("0 reserved")
    x, y = await page.locator(".map-scroll").evaluate(POINT, HOST)
    await page.mouse.move(x, y)
    await expect(page.locator(".tooltip")).to_contain_text("aaa/waits-0: 8 GPUs reserved for it when free")


async def test_filter_says_what_it_selects(page, address):
    await open_page(page, address, "#/map?view=table&set=training/train-00")
    summary = page.locator(".fact-gangs")
    await expect(summary).to_have_text("Of training/train-00: 64 GPUs in 8 hosts, 3 gangs, 2 waiting")
    table = page.get_by_role("table")
    await expect(table.get_by_role("columnheader", name="Of training/train-00")).to_be_visible()
    await page.get_by_role("button", name="Hosts of z0-b1-r3").click()
    rows = table.locator(".host-row")
    await expect(rows).to_have_count(8)
    await expect(rows.filter(has_text="gangs")).to_have_count(0)


async def test_gang_of_the_table_is_selected_in_the_table(page, address):
    await open_page(page, address, "#/map?view=table")
    await page.get_by_role("link", name="training/train-00-0").first.click()
    await expect(page).to_have_url(re.compile("view=table.*gang=training/train-00-0"))
    await expect(page.get_by_role("region", name="Selection")).to_contain_text("train-00-0")
    await page.get_by_role("link", name="z0-b0", exact=True).click()
    await expect(page.get_by_role("region", name="Selection").get_by_role("heading")).to_have_text("z0-b0")


async def test_tabs_of_narrow_screen_do_not_scroll_down(page, address):
    await page.set_viewport_size({"width": 390, "height": 844})
    await open_page(page, address, "#/map")
    await map_is_drawn(page)
    tabs = page.get_by_role("navigation", name="Pages")
    assert await tabs.evaluate("(nav) => nav.offsetHeight - nav.clientHeight") == 0
    assert await tabs.evaluate("(nav) => getComputedStyle(nav).overflowY") == "hidden"
