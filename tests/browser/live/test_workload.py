"""The page of a set: the same objects as the API server has."""

from __future__ import annotations

import re

import yaml
from playwright.async_api import expect

from grove.api.naming import labels
from grove.cli.commands.demo import SETS
from grove.kube.client.resource import PODS
from tests.browser.support.demo import NAME, NAMESPACE
from tests.browser.support.page_parts import open_page

LINK = f"#/workloads/{NAMESPACE}/{NAME}"


async def test_tree_has_all_pods_with_their_nodes(page, address, demo):
    pods = (
        await demo.client.list(PODS, as_type=dict, namespace=NAMESPACE, labels=f"{labels.PART_OF}={NAME}")
    ).items
    await open_page(page, address, LINK)
    await page.get_by_role("button", name="Open all").click()
    rows = page.get_by_role("treeitem")
    for pod in pods:
        row = rows.filter(has_text=pod["metadata"]["name"])
        await expect(row).to_contain_text(pod["spec"]["nodeName"])
        await expect(row).to_contain_text("ready")
    await expect(rows.filter(has_text=re.compile("^pod "))).to_have_count(len(pods))


async def test_yaml_is_that_of_the_api_server(page, address, demo):
    truth = await demo.client.get(SETS, NAME, namespace=NAMESPACE, as_type=dict)
    await open_page(page, address, f"{LINK}?object=podcliqueset/{NAME}")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("YAML", exact=True)).to_contain_text("kind: PodCliqueSet")
    shown = yaml.safe_load(await dialog.get_by_label("YAML", exact=True).text_content() or "")
    assert "managedFields" not in shown["metadata"]
    assert shown["spec"] == truth["spec"]
    assert shown["metadata"]["uid"] == truth["metadata"]["uid"]
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(page).not_to_have_url(re.compile("object="))


async def test_time_line_has_start_and_placement(page, address, demo):
    await open_page(page, address, LINK)
    line = page.get_by_role("region", name="Time line")
    for word in ("Start", "Placement"):
        await expect(line.get_by_role("button", name=word)).to_have_attribute("aria-pressed", "true")
    await line.get_by_role("button", name="Only warnings").click()
    await expect(line.locator(".entry:not(.warn)")).to_have_count(0)
