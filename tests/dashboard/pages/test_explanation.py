"""Why something waits, by the solver on the state of a board."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from grove import timing
from grove.cluster_state.model import ClusterState
from grove.dashboard.pages import explainers
from grove.dashboard.pages.explainers import explainers_of
from grove.dashboard.pages.explanation import explanation_page
from grove.dashboard.pages.visible import COUNTED, NO_NODES
from grove.dashboard.rights import Rights
from grove.explanation.reading import SETS
from grove.kube.client.resource import NODES
from grove.kube.errors import ConnectError
from tests.cluster_state.states import shaped, unreadable, with_objects
from tests.dashboard.pages.boards import StateBoard
from tests.dashboard.pages.clusters import a_pod, demo, with_pods
from tests.dashboard.pages.test_workload import HOSTILE, problem
from tests.plan.builders import a_set

ALL, TENANT = Rights(), Rights(frozenset({"mine"}))
GPUS = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}


def a_gpu_set(name: str, namespace: str, pods: int, **changes: Any) -> dict[str, Any]:
    """A set of one gang, each pod of which needs a whole node, all in one rack."""
    body = a_set(f"worker:{pods}", name=name)
    body["metadata"]["namespace"] = namespace
    template = body["spec"]["template"]
    template["cliques"][0]["spec"]["podSpec"] = {"containers": [{"name": "main", **GPUS, **changes}]}
    template["topologyConstraint"] = {"topologyName": "local", "pack": {"required": "rack"}}
    return body


def full() -> ClusterState:
    """A rack has two nodes; pods of other namespaces use one of each rack, and set `large` finds no place."""
    state = shaped("1x2x2x2", 8, "local")
    nodes = [msgspec.json.decode(each)["metadata"]["name"] for each in state.kind(NODES).items]
    pods = [a_pod("secret-ns", f"secret-pod-{i}", node, 8) for i, node in enumerate(nodes[::2])]
    state = with_objects(state, SETS, a_gpu_set("large", "mine", 2), a_gpu_set("secret-set", "secret-ns", 2))
    return with_pods(state, *pods)


async def test_gang_has_the_domains_of_the_solver():
    page = await explanation_page(StateBoard(full()), ALL, "mine", "set/large")
    (gang,) = page.explanation.gangs
    assert (gang.level, len(gang.domains), gang.domains[0].room) == ("rack", 4, 1)
    assert {each.pod.namespace for each in gang.holders} == {"secret-ns"}
    assert {"endPods", "addNodes"} <= {each.action for each in gang.remedies}


@pytest.mark.parametrize(("nodes", "line"), [(True, COUNTED), (False, NO_NODES)])
async def test_viewer_of_one_namespace_reads_no_name_of_others(nodes, line):
    state = full()
    wrong = {"metadata": {"name": "secret-wrong", "namespace": "secret-ns"}, "spec": 1}
    state = with_objects(
        state, SETS, wrong, a_gpu_set("secret-bad", "secret-ns", 1, resources={"limits": {"cpu": "x"}})
    )
    page = await explanation_page(StateBoard(state), replace(TENANT, nodes=nodes), "mine", "set/large")
    text = msgspec.json.encode(page).decode()
    assert page.explanation.waits
    assert "secret" not in text
    assert line in page.unread
    names = [msgspec.json.decode(each)["metadata"]["name"] for each in state.kind(NODES).items]
    assert nodes or not any(name in text for name in names)
    assert nodes == bool(page.explanation.gangs[0].domains)


async def test_set_that_cannot_be_planned_is_explained():
    state = with_objects(demo(), SETS, a_gpu_set("bad", "mine", 1, resources={"limits": {"cpu": "x"}}))
    page = await explanation_page(StateBoard(state), TENANT, "mine", "set/bad")
    assert page.explanation.waits
    assert [each for each in page.unread if each.startswith("PodCliqueSet mine/bad: it cannot be planned")]


@pytest.mark.parametrize(
    "written", ["large", "job/large", "a/b/c", "/", "set/", *(f"set/{each}" for each in HOSTILE)]
)
async def test_what_names_no_object_is_refused(written):
    status, _ = await problem(explanation_page(StateBoard(full()), ALL, "mine", written))
    assert status == HTTPStatus.BAD_REQUEST


async def test_unknown_and_invisible_objects_have_the_same_answer():
    board = StateBoard(full())
    unknown = await problem(explanation_page(board, ALL, "mine", "gang/secret-set"))
    hidden = await problem(explanation_page(board, TENANT, "secret-ns", "set/secret-set"))
    assert (unknown[0], hidden[0]) == (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND)
    assert "secret-ns" not in unknown[1], "the name of a namespace that has one is not given away"
    assert board.states_read == 0


async def test_object_that_is_deleted_meanwhile_is_unknown():
    board = StateBoard(full())
    board.found = shaped("1x1x1x1")
    assert (await problem(explanation_page(board, ALL, "mine", "set/large")))[0] == HTTPStatus.NOT_FOUND


async def test_cluster_that_cannot_be_read_is_one_line():
    board = StateBoard(full(), problem=ConnectError("connection refused"))
    status, line = await problem(explanation_page(board, ALL, "mine", "set/large"))
    assert (status, line) == (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the cluster cannot be read: connection refused; try again",
    )
    board = StateBoard(full())
    board.found = unreadable(board.found, SETS, "no right to list podcliquesets.grove.io")
    status, line = await problem(explanation_page(board, ALL, "mine", "set/large"))
    assert line == "the dashboard cannot explain it: no right to list podcliquesets.grove.io"


@pytest.mark.parametrize(
    ("raised", "unread"), [(ConnectError("secret-ns: refused"), ""), (None, "no right in secret-ns (403)")]
)
async def test_cluster_that_cannot_be_read_names_no_other_namespace(raised, unread):
    board = StateBoard(full(), problem=raised)
    board.found = unreadable(board.found, SETS, unread) if unread else board.found
    page = explanation_page(board, TENANT, "mine", "set/large")
    status, line = await problem(page)
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "secret" not in line
    status, line = await problem(explanation_page(board, replace(TENANT, own=True), "mine", "set/large"))
    assert "secret-ns" in line


async def test_one_state_is_searched_once(monkeypatch):
    made = []
    original = explainers.Preparation
    monkeypatch.setattr(explainers, "Preparation", lambda lease: made.append(1) or original(lease))
    board = StateBoard(full())
    await asyncio.gather(
        explanation_page(board, ALL, "mine", "set/large"),
        explanation_page(board, TENANT, "mine", "set/large"),
        explanation_page(board, ALL, "secret-ns", "set/secret-set"),
    )
    assert len(made) == 1
    board.found = replace(board.found, taken_at=time.time())
    await explanation_page(board, ALL, "mine", "set/large")
    assert len(made) == 2


async def test_memory_is_freed_some_time_after_the_last_use(monkeypatch):
    monkeypatch.setattr(timing, "EXPLAINER_KEPT", 0.01)
    board, freed = StateBoard(full()), asyncio.Event()
    kept = explainers_of(board)
    forget = kept.forget
    await explanation_page(board, ALL, "mine", "set/large")
    monkeypatch.setattr(kept, "forget", lambda: (forget(), freed.set()))
    await explanation_page(board, ALL, "mine", "set/large")
    assert kept._explainer is not None
    await asyncio.wait_for(freed.wait(), 5)
    assert (kept._explainer, kept._state, kept._found) == (None, None, {})


async def test_other_requests_are_answered_during_a_search():
    board, turns = StateBoard(full()), 0
    page = asyncio.create_task(explanation_page(board, ALL, "mine", "set/large"))
    while not page.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 3
    assert (await page).explanation.waits


async def test_search_that_is_not_waited_for_keeps_its_turn(monkeypatch):
    running, most, begun, loop = 0, 0, asyncio.Event(), asyncio.get_running_loop()
    original = explainers.Explainers._explain

    def counted(self, *arguments):
        nonlocal running, most
        running += 1
        most = max(most, running)
        loop.call_soon_threadsafe(begun.set)
        try:
            return original(self, *arguments)
        finally:
            running -= 1

    monkeypatch.setattr(explainers.Explainers, "_explain", counted)
    board = StateBoard(full())
    page = asyncio.create_task(explanation_page(board, ALL, "mine", "set/large"))
    await begun.wait()
    page.cancel()
    await asyncio.gather(page, return_exceptions=True)
    await explanation_page(board, ALL, "secret-ns", "set/secret-set")
    assert most == 1


async def test_searches_that_are_not_waited_for_leave_the_queue(monkeypatch):
    """Also the one that would be next: its place is free for others at once."""
    computed, begun, loop = [], asyncio.Event(), asyncio.get_running_loop()
    original = explainers.Explainers._explain

    def recorded(self, state, written, namespace):
        computed.append(written)
        loop.call_soon_threadsafe(begun.set)
        return original(self, state, written, namespace)

    monkeypatch.setattr(explainers.Explainers, "_explain", recorded)
    board = StateBoard(full())
    found = explainers_of(board)
    first = asyncio.create_task(found.explain(board, "podcliqueset/large", "mine"))
    await begun.wait()
    others = [asyncio.create_task(found.explain(board, "podgang/large-0", "mine")) for _ in range(20)]
    await asyncio.sleep(0)
    for each in others:
        each.cancel()
    await asyncio.gather(first, *others, return_exceptions=True)
    last = await found.explain(board, "podcliqueset/secret-set", "secret-ns")
    assert last.explanation.waits
    assert computed == ["podcliqueset/large", "podcliqueset/secret-set"]
