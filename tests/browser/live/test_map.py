"""The map of a live cluster: gangs on their hosts, and cells that change without a reload."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, expect

from grove.api.naming import labels, names
from grove.kube.client.resource import NODES, PODS
from tests.browser.support.demo import NAME, NAMESPACE, SECOND, Demo
from tests.browser.support.guard import allow
from tests.browser.support.page_parts import map_is_drawn, open_page, was_reloaded, watch_reloads

DECODE = names.group(NAME, 0, "decode")
HOSTS = """() => Object.fromEntries([...document.querySelectorAll(".host-row")].map((row) =>
  [row.cells[0].innerText.trim(), row.cells[2].innerText]))"""
PIXELS = """async (element, before) => {
  const canvas = element.querySelector("canvas");
  for (;;) {
    const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const hash = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].join(" ");
    if (hash !== before) return hash;
    await new Promise(requestAnimationFrame);
  }
}"""
"""A hash of the canvas, as soon as it is another one than before."""


async def gangs_by_host(demo: Demo) -> dict[str, set[str]]:
    """What the API server says."""
    nodes = (await demo.client.list(NODES, as_type=dict)).items
    found: dict[str, set[str]] = {each["metadata"]["name"]: set() for each in nodes}
    for pod in (await demo.client.list(PODS, as_type=dict, namespace=NAMESPACE)).items:
        if node := pod["spec"].get("nodeName"):
            found[node].add(f"{NAMESPACE}/{pod['metadata']['labels'][labels.GANG]}")
    return found


async def shown_by_host(page: Page) -> dict[str, set[str]]:
    """What the table of the map says; gangs for which nodes are held are not on them."""
    found = await page.evaluate(HOSTS)
    words = {host: text.replace(";", " ").replace(",", " ").split() for host, text in found.items()}
    waiting = f"{NAMESPACE}/{SECOND}-2"
    return {host: {word for word in each if "/" in word} - {waiting} for host, each in words.items()}


async def test_gangs_are_shown_on_their_hosts(page, address, demo):
    await open_page(page, address, "#/map?view=table")
    racks = page.get_by_role("button", name="Hosts of")
    await expect(racks).to_have_count(4)
    for rack in await racks.all():
        await rack.click()
    await expect(page.locator(".host-row")).to_have_count(32)
    assert await shown_by_host(page) == await gangs_by_host(demo)


async def test_cells_change_without_reload(page, address, demo):
    allow(page, "willReadFrequently")  # the test reads pixels
    await open_page(page, address, "#/map")
    area = page.locator(".map-scroll")
    summary = page.locator(".summary")
    before, text = await area.evaluate(PIXELS, ""), await summary.inner_text()
    await watch_reloads(page)
    await demo.scale_group(DECODE, 2)
    try:
        await expect(summary).not_to_have_text(text)
        await expect(summary).to_contain_text("6 gangs")
        async with asyncio.timeout(30.0):
            assert await area.evaluate(PIXELS, before) != before
    finally:
        await demo.scale_group(DECODE, 3)
    await expect(summary).to_contain_text("7 gangs")
    assert not await was_reloaded(page)


async def test_waiting_gang_beside_the_map_leads_to_its_reason(page, address, demo):
    await open_page(page, address, "#/map")
    await page.get_by_role("complementary").get_by_role("link", name=f"{SECOND}-2").first.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(f"{SECOND}-2")
    await page.get_by_role("link", name="Show on map").click()
    await map_is_drawn(page)
    await expect(page.get_by_role("region", name="Selection")).to_contain_text(f"{SECOND}-2")
