"""What tenants write is text: nothing of it becomes part of the page, and nothing breaks its layout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from bench.dashboard.busy_state import with_objects
from playwright.async_api import expect

from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cluster_state.model import ClusterState
from grove.cluster_state.snapshot_file import encode
from grove.kube.client.resource import NODES, PODS
from grove.operator.caches.resources import resource_of
from tests.browser.support.dashboard import Dashboard, dashboard
from tests.browser.support.guard import allow
from tests.browser.support.page_parts import open_page

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script><b>bold</b>{{7*7}}${7*7}"
LONG = f"{MARKUP} {'x' * 10_000} \u202eesrever \u200b\x07 \U0001f600"
ELEMENTS = """() => document.querySelectorAll("#app script, #app img[src=x], #app b").length"""
GANG = "too-large-0"
LINKS = [
    "#/map",
    "#/map?view=table",
    f"#/map?gang=research/{GANG}",
    f"#/map?node={MARKUP}&gang={MARKUP}&namespace={MARKUP}",
    "#/waiting",
    f"#/waiting?q={MARKUP}",
    f"#/waiting/research/{GANG}",
    f"#/waiting/{MARKUP.replace('/', '')}/x",
    "#/workloads",
    "#/workloads/research/too-large",
    "#/workloads/research/too-large?object=podgang/too-large-0",
    "#/events",
]


def poisoned(body: dict[str, Any]) -> dict[str, Any]:
    """The object with hostile messages and annotations."""
    status = dict(body.get("status", {}))
    if "conditions" in status:
        status["conditions"] = [{**each, "message": LONG} for each in status["conditions"]]
    status["lastErrors"] = [{"code": MARKUP, "description": LONG, "observedAt": "2026-01-01T00:00:00Z"}]
    metadata = {**body["metadata"], "annotations": {"a": LONG, **body["metadata"].get("annotations", {})}}
    return {**body, "metadata": metadata, "status": status}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def hostile(state: ClusterState, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dashboard]:
    """A dashboard of a cluster whose tenants mean harm."""
    sets, gangs = resource_of(PodCliqueSet.KIND), resource_of(PodGang.KIND)
    bodies = {each: list(map(poisoned, state.objects(each, dict))) for each in (sets, gangs, PODS)}
    nodes = list(state.objects(NODES, dict))
    nodes[0]["spec"] = {"taints": [{"key": MARKUP, "effect": "NoSchedule"}]}
    nodes[1]["metadata"]["labels"] |= dict.fromkeys(nodes[1]["metadata"]["labels"], MARKUP * 50)
    file = tmp_path_factory.mktemp("dashboard") / "cluster.json"
    file.write_bytes(encode(with_objects(state, {**bodies, NODES: nodes})))
    async with dashboard("--snapshot", str(file)) as found:
        yield found


@pytest.mark.parametrize("width", [390, 1440])
async def test_hostile_texts_stay_texts(page, hostile, width):
    allow(page, "400 (Bad Request)")  # a namespace of a link that cannot be one
    await page.set_viewport_size({"width": width, "height": 844})
    for link in LINKS:
        await open_page(page, hostile.address, link)
        found = await page.evaluate(ELEMENTS)
        assert found == 0, link
        beyond = await page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
        assert beyond <= 0, f"{link}: {beyond} px"


async def test_hostile_message_is_shown_as_it_is(page, hostile):
    await open_page(page, hostile.address, "#/workloads/research/too-large")
    await expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
