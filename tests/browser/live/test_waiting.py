"""The gang that waits: the same reason and the same domains as `grove explain` has."""

from __future__ import annotations

import json

from playwright.async_api import expect

from tests.browser.support.demo import NAMESPACE, SECOND
from tests.browser.support.page_parts import ROWS
from tests.cluster.cli.commands import grove

GANG = f"{SECOND}-2"


async def explained(demo) -> dict:
    """What the command says."""
    kubeconfig = str(demo.cluster.kubeconfig)
    ended = await grove("explain", f"gang/{GANG}", "-n", NAMESPACE, "-o", "json", "--kubeconfig", kubeconfig)
    found = json.loads(ended.out)
    return found.get("explanation", found)


async def test_waiting_gang_is_listed_with_its_reason(page, address, demo):
    truth = await explained(demo)
    await page.goto(f"{address}#/waiting")
    row = page.get_by_role("row").filter(has_text=GANG)
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text(truth["reasons"][0]["code"])
    await expect(row).to_contain_text("0/8")
    await expect(page.get_by_role("navigation")).to_contain_text("1 gang waits")
    await row.get_by_role("link", name=GANG, exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(GANG)


async def test_domains_of_waiting_gang_are_those_of_explain(page, address, demo):
    truth = (await explained(demo))["gangs"][0]
    await page.goto(f"{address}#/waiting/{NAMESPACE}/{GANG}")
    table = page.get_by_role("table", name="Domains that the gang might go to")
    await expect(table).to_be_visible()
    shown = await table.evaluate(ROWS)
    assert [row[0] for row in shown] == [domain["domain"] for domain in truth["domains"]]
    for row, domain in zip(shown, truth["domains"], strict=True):
        assert row[1] == f"{domain.get('free', 0)} of {domain['total']}"
        assert row[2].split()[0] == str(domain["need"])
        assert row[4] == f"{domain.get('room', 0)} of {domain['pods']}"
    for remedy in truth.get("remedies", ()):
        await expect(page.get_by_text(remedy["text"])).to_be_visible()
