"""Changes of the cluster appear on the page, which is not loaded again."""

from __future__ import annotations

from playwright.async_api import expect

from grove.api.naming import names
from grove.cli.commands.demo import SETS
from grove.kube.client.decoding import Object
from tests.browser.support.demo import NAME, NAMESPACE
from tests.browser.support.guard import allow
from tests.browser.support.page_parts import was_reloaded, watch_reloads

DECODE = names.group(NAME, 0, "decode")
SMALL = {
    "apiVersion": SETS.api_version,
    "kind": SETS.kind,
    "metadata": {"name": "passing"},
    "spec": {
        "replicas": 1,
        "template": {
            "cliques": [
                {
                    "name": "worker",
                    "spec": {
                        "replicas": 1,
                        "podSpec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
                    },
                }
            ]
        },
    },
}


async def test_scaled_group_changes_page_of_set(page, address, demo):
    await page.goto(f"{address}#/workloads/{NAMESPACE}/{NAME}")
    gang = page.get_by_role("treeitem").filter(has_text=f"gang {DECODE}-1")
    ready = page.get_by_role("main")
    await expect(ready).to_contain_text("14/14")
    await watch_reloads(page)
    await demo.scale_group(DECODE, 2)
    try:
        await expect(ready).to_contain_text("12/12")
        await expect(gang).to_have_count(0)
    finally:
        await demo.scale_group(DECODE, 3)
    await expect(ready).to_contain_text("14/14")
    assert not await was_reloaded(page)


async def test_set_appears_and_disappears(page, address, demo):
    await page.goto(f"{address}#/workloads")
    row = page.get_by_role("row").filter(has_text="passing")
    await expect(page.get_by_role("row").filter(has_text=NAME).first).to_be_visible()
    await watch_reloads(page)
    await demo.client.create(SETS, SMALL, namespace=NAMESPACE, as_type=Object)
    await expect(row).to_contain_text("Healthy")
    await page.goto(f"{address}#/workloads/{NAMESPACE}/passing")
    await expect(page.locator(".subtitle")).to_contain_text("1/1 replicas available")
    allow(page, "/api/workload")  # a read that has begun when the set is deleted
    await demo.client.delete(SETS, "passing", namespace=NAMESPACE, as_type=Object)
    await expect(page.locator(".subtitle")).to_contain_text("last seen: ")
    await expect(page.locator(".last-seen .tiles")).to_have_css("filter", "grayscale(1)")
    await page.goto(f"{address}#/workloads")
    await expect(row).to_have_count(0)
    assert not await was_reloaded(page)
