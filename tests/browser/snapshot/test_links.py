"""Filters, selections and searches are in the link: a reload keeps them, and the back button undoes them."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.support.page_parts import map_is_drawn, open_page


async def test_filter_is_kept_by_reload_and_undone_by_back(page, address):
    await open_page(page, address, "#/map")
    await page.get_by_label("Namespace").select_option("training")
    await expect(page).to_have_url(re.compile("namespace=training"))
    await page.reload()
    await expect(page.get_by_label("Namespace")).to_have_value("training")
    await page.go_back()
    await expect(page.get_by_label("Namespace")).to_have_value("")
    await page.go_forward()
    await expect(page.get_by_label("Namespace")).to_have_value("training")


async def test_filter_by_namespace_leaves_its_sets(page, address):
    await open_page(page, address, "#/map?view=table&namespace=training")
    table = page.get_by_role("table")
    await expect(table.get_by_role("link").filter(has_text="training/").first).to_be_visible()
    await expect(table.get_by_role("link").filter(has_text="inference/")).to_have_count(0)


async def test_filter_by_level_draws_its_domains(page, address):
    await open_page(page, address, "#/map?view=table&level=block")
    headers = page.get_by_role("table").get_by_role("rowheader")
    await expect(headers.filter(has_text="z0-b1")).to_have_count(1)
    await expect(headers.filter(has_text="z0-b1-r0")).to_have_count(0)


async def test_selection_is_in_the_link(page, address):
    await open_page(page, address, "#/map")
    await page.goto(f"{address}#/map?node=z0-b0-r0-h0")
    selection = page.get_by_role("region", name="Selection")
    await expect(selection).to_contain_text("z0-b0-r0-h0")
    await page.reload()
    await expect(selection).to_contain_text("z0-b0-r0-h0")
    await selection.get_by_role("button", name="Clear the selection").first.click()
    await expect(selection).to_be_hidden()
    await expect(page).not_to_have_url(re.compile("node="))


async def test_link_to_unknown_things_says_so(page, address):
    await page.goto(f"{address}#/map?node=missing")
    await expect(page.get_by_text("This host is not in the picture")).to_be_visible()
    for unknown in ("nowhere", "constructor"):
        await page.goto(f"{address}#/{unknown}")
        await expect(page.get_by_text("There is no such page.")).to_be_visible()
        await page.goto(f"{address}#/map?node=constructor")
        await expect(page.get_by_text("This host is not in the picture")).to_be_visible()


async def test_kinds_of_objects_are_written_in_any_case(page, address):
    for kind in ("PodCliqueSet", "pcs"):
        await page.goto(f"{address}#/workloads/inference/serve-00?object={kind}/serve-00")
        await expect(page.get_by_role("dialog").get_by_text("kind: PodCliqueSet")).to_be_visible()


async def test_lists_say_what_could_not_be_read(page, address):
    async def with_unread(route):
        answer = await route.fetch()
        picture = {**await answer.json(), "unread": ["pods: no right to list them"]}
        await route.fulfill(response=answer, json=picture)

    await page.route("**/api/picture", with_unread)
    for name in ("waiting", "workloads", "events"):
        await page.goto(f"{address}#/{name}")
        await expect(page.get_by_role("main").get_by_text("pods: no right to list them")).to_be_visible()


async def test_list_keeps_its_filter_and_order(page, address):
    await open_page(page, address, "#/waiting")
    await page.get_by_label("Namespace").select_option("research")
    await page.get_by_role("button", name="Gang").click()
    await expect(page).to_have_url(re.compile("namespace=research"))
    await page.reload()
    await expect(page.get_by_label("Namespace")).to_have_value("research")
    rows = page.get_by_role("table").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("too-large-0")


async def test_search_leads_to_what_is_chosen(page, address):
    await open_page(page, address, "#/events")
    await page.keyboard.press("/")
    search = page.get_by_role("combobox", name=re.compile("^Search"))
    await expect(search).to_be_focused()
    await search.press_sequentially("too-large")
    options = page.locator("#search-hits [role=option]")
    await expect(options.first).to_contain_text("too-large")
    await page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("too-large"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("too-large")


async def test_search_for_host_selects_it(page, address):
    await open_page(page, address, "#/map")
    await page.keyboard.press("/")
    await page.keyboard.type("Z0-B1-R3-H7")
    await page.locator("#search-hits").get_by_text("z0-b1-r3-h7").click()
    await expect(page.get_by_role("region", name="Selection")).to_contain_text("z0-b1-r3-h7")


async def test_search_that_finds_nothing_says_so(page, address):
    await open_page(page, address, "#/map")
    await page.keyboard.press("/")
    await page.keyboard.type("no such thing")
    await expect(page.get_by_text("nothing found").first).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#search-hits")).to_be_hidden()
    await map_is_drawn(page)
