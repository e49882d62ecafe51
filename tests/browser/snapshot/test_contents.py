"""The map and its table show what the snapshot has: hosts, gangs on them, foreign load and free GPUs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from bench.dashboard.busy_state import GPU
from playwright.async_api import expect

from grove.api.naming import labels
from grove.cluster_state.model import ClusterState
from grove.kube.client.resource import NODES, PODS
from grove.local.cluster.cluster_shape import RACK
from tests.browser.support.colour import distance
from tests.browser.support.page_parts import ROWS, map_is_drawn, open_page

LOOK = """async ([element, gang]) => {
  const { PALETTE } = await import("/static/js/colours.js");
  const { mapOf } = await import("/static/js/map/page.js");
  return [PALETTE.light, mapOf(element).page.looks.of(gang).colour];
}"""
CELL = """async ([element, name]) => {
  const { mapOf } = await import("/static/js/map/page.js");
  const { view } = mapOf(element);
  const box = element.getBoundingClientRect();
  for (let y = box.top + 2; y < box.bottom; y += 3)
    for (let x = box.left + 2; x < box.right; x += 3) {
      const { host, cell } = view.find(x, y);
      if (host?.name === name && cell === 0) {
        const canvas = element.querySelector("canvas");
        const edge = canvas.getBoundingClientRect();
        const ratio = canvas.width / edge.width;
        const at = [(x + 5 - edge.left) * ratio, (y + 5 - edge.top) * ratio];
        const [r, g, b] = canvas.getContext("2d").getImageData(...at, 1, 1).data;
        return "#" + [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
      }
    }
  return null;
}"""


def bodies(state: ClusterState, resource: object) -> list[dict]:
    return list(state.objects(resource, dict))


def used(state: ClusterState) -> dict[str, Counter[str]]:
    """By node, the GPUs of each gang; those of pods without a gang under an empty name."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in bodies(state, PODS):
        if node := pod["spec"].get("nodeName"):
            gang = pod["metadata"].get("labels", {}).get(labels.GANG)
            gpus = sum(
                int(each.get("resources", {}).get("requests", {}).get(GPU, 0))
                for each in pod["spec"]["containers"]
            )
            found[node][f"{pod['metadata']['namespace']}/{gang}" if gang else ""] += gpus
    return found


async def test_table_counts_what_the_snapshot_has(page, address, state):
    use, racks, bad = used(state), defaultdict(list), set()
    for node in bodies(state, NODES):
        racks[node["metadata"]["labels"][RACK]].append(node["metadata"]["name"])
        spec, conditions = node.get("spec", {}), node["status"]["conditions"]
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        if spec.get("unschedulable") or spec.get("taints") or not ready:
            bad.add(node["metadata"]["name"])
    await page.goto(f"{address}#/map?view=table")
    table = page.get_by_role("table")
    await expect(table.get_by_role("row")).not_to_have_count(1)
    await expect(table.get_by_role("rowheader", name=re.compile(min(racks)))).to_be_visible()
    shown = {re.sub("^\\W+", "", row[0]): row for row in await table.evaluate(ROWS)}
    for rack, nodes in racks.items():
        foreign = sum(use[node][""] for node in nodes)
        ours = sum(sum(use[node].values()) for node in nodes) - foreign
        row = shown[rack]
        assert row[2].split()[0] == str(len(nodes)), rack
        free, blocked = (
            sum(8 - sum(use[node].values()) for node in nodes if (node in bad) == wanted)
            for wanted in (False, True)
        )
        counts = [8 * len(nodes), ours, 0, foreign, free, blocked]
        assert [int(each) for each in row[3:9]] == counts, rack
        gangs = {gang for node in nodes for gang in use[node] if gang}
        assert set(row[10].split()) == gangs, rack


async def test_cell_has_the_colour_of_its_gang(page, address, state):
    full = [(node, found) for node, found in used(state).items() if any(found.values())]
    node, (gang, _) = next(
        (n, max(f.items(), key=lambda each: each[1])) for n, f in full if max(f.values()) == 8
    )
    await page.goto(f"{address}#/map?zoom=14&node={node}")
    await map_is_drawn(page)
    area = await page.locator(".map-scroll").element_handle()
    colour = await page.evaluate(CELL, [area, node])
    palette, expected = await page.evaluate(LOOK, [area, gang])
    # A texture that tells gangs of the same colour apart may cover the pixel.
    assert min(palette, key=lambda each: distance(each, colour)) == expected


async def test_selected_host_shows_its_pods(page, address, state):
    node, _ = next((n, f) for n, f in used(state).items() if any(gang for gang in f))
    pods = [each["metadata"] for each in bodies(state, PODS) if each["spec"].get("nodeName") == node]
    await page.goto(f"{address}#/map?node={node}")
    details = page.get_by_role("region", name="Selection")
    await expect(details).to_contain_text(node)
    for pod in pods:
        await expect(details).to_contain_text(pod["name"])


async def test_bad_hosts_are_named(page, address, state):
    for node in bodies(state, NODES):
        name, spec = node["metadata"]["name"], node.get("spec", {})
        word = "cordoned" if spec.get("unschedulable") else "maintenance" if spec.get("taints") else None
        if word is not None:
            await page.goto(f"{address}#/map?node={name}")
            await expect(page.get_by_role("region", name="Selection")).to_contain_text(word)


async def test_snapshot_says_how_old_it_is(page, address):
    await page.goto(address)
    pill = page.locator("header .pill")
    await expect(pill).to_have_text(re.compile("^snapshot, 3 d(ays)? old$"))
    await expect(pill).to_have_attribute("data-state", "snapshot")


async def test_ages_in_a_snapshot_stand_still(page, address):
    await page.goto(f"{address}#/waiting")
    row = page.get_by_role("row").filter(has_text="too-large-0")
    await expect(row).to_contain_text("59 min")
    await page.clock.install()
    await page.clock.run_for(600_000)
    await expect(row).to_contain_text("59 min")


async def test_events_of_a_snapshot_are_said_to_be_missing(page, address):
    await open_page(page, address, "#/events")
    await expect(page.get_by_role("main")).to_contain_text("A snapshot has no events")


async def test_numbers_of_a_set_are_of_one_answer(page, address):
    """The picture may be older or newer than the answer about a set."""

    async def later(route):
        answer = await route.fetch()
        body = await answer.json()
        body["status"].update(verdict="Degraded", summary="0/9 replicas available")
        body["status"]["replicas"].update(available=0, desired=9)
        await route.fulfill(response=answer, json=body)

    await page.route("**/api/workload?*", later)
    await open_page(page, address, "#/workloads/inference/serve-00")
    head = page.locator(".detail-head")
    await expect(head).to_contain_text("0/9 replicas available")
    await expect(head).to_contain_text("Degraded")
    await expect(page.locator(".tiles")).to_contain_text("0/9")
