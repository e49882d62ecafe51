"""What the page says when the dashboard or the API server is away, and that it goes on afterwards."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.support.dashboard import dashboard
from tests.browser.support.demo import NAME, SECOND
from tests.browser.support.guard import allow
from tests.browser.support.outage import way_to
from tests.browser.support.page_parts import was_reloaded, watch_reloads

LONG = 40_000
"""Milliseconds; the page waits up to 15 s between two attempts."""
GONE = ("Failed to load resource", "ERR_", "net::")


async def test_page_reconnects_after_restart_of_dashboard(page, demo):
    for text in GONE:
        allow(page, text)
    async with dashboard("--kubeconfig", str(demo.cluster.kubeconfig)) as own:
        await page.goto(f"{own.address}#/workloads")
        pill = page.locator("header .pill")
        await expect(pill).to_have_text("live")
        await expect(page.get_by_role("row").filter(has_text=SECOND)).to_be_visible()
        await watch_reloads(page)
        await own.stop()
        await expect(pill).to_have_text(re.compile("^reconnecting to the dashboard, picture .* old$"))
        await expect(page.get_by_role("row").filter(has_text=SECOND)).to_be_visible()
        await own.start()
        await expect(pill).to_have_text("live", timeout=LONG)
        await expect(page.get_by_role("row").filter(has_text=NAME).first).to_be_visible()
        assert not await was_reloaded(page)


async def test_page_says_that_api_server_is_away(page, demo, tmp_path):
    async with way_to(demo.cluster, tmp_path) as way, dashboard("--kubeconfig", way.kubeconfig) as own:
        await page.goto(f"{own.address}#/workloads")
        pill = page.locator("header .pill")
        await expect(pill).to_have_text("live")
        await expect(page.get_by_role("row").filter(has_text=SECOND)).to_be_visible()
        way.begin()
        await expect(pill).to_have_text(re.compile("^picture .* old: API server away"), timeout=LONG)
        await expect(pill).to_have_attribute("data-state", "error")
        banner = page.get_by_role("region", name="What is away")
        await expect(banner).to_contain_text("The API server is away; this picture is")
        await expect(page.get_by_role("row").filter(has_text=SECOND)).to_be_visible()
        way.end()
        await expect(pill).to_have_text("live", timeout=LONG)
        await expect(banner).to_be_hidden()
