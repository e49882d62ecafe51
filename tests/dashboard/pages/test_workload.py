"""The page of a workload, and what is answered for names that are none or not visible."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
import pytest
from msgspec.structs import replace

from grove.cluster_state.model import ClusterState
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.explanation import explanation_page
from grove.dashboard.pages.workload import workload_page
from grove.dashboard.rights import Rights
from grove.explanation.reading import GRAPHS, SETS
from grove.kube.client.resource import PODS
from grove.kube.errors import ConnectError
from tests.cluster_state.states import with_objects
from tests.dashboard.pages.boards import StateBoard
from tests.dashboard.pages.clusters import demo, failing_pod

ALL = Rights()
HOSTILE = ["", "a/b", "../x", "A", "x" * 1_000_000, "\x00", "a\nb", "-a", "%2e", "ü", " demo"]


async def problem(page) -> tuple[HTTPStatus, str]:
    with pytest.raises(PageError) as raised:
        await page
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 400
    assert str(raised.value) == raised.value.message
    return raised.value.status, raised.value.message


async def test_page_has_tree_status_and_time_line():
    page = await workload_page(StateBoard(demo()), ALL, "ns", "demo")
    assert (page.set.name, len(page.set.pods), page.status.summary) == (
        "demo",
        5,
        "1/1 replicas available, 2/2 gangs running, 5/5 pods ready",
    )
    assert [each.title for each in page.timeline] == [
        "Created",
        "Pods created",
        "Pods scheduled",
        "Scheduled",
        "Ready",
    ]
    assert (page.containers, page.unread) == ((), ())
    encoded = msgspec.to_builtins(page)
    assert set(encoded) == {"set", "status", "timeline", "containers", "unread"}


async def test_unknown_and_invisible_sets_have_the_same_answer():
    board = StateBoard(demo())
    unknown = await problem(workload_page(board, ALL, "ns", "other"))
    hidden = await problem(workload_page(board, Rights(frozenset({"mine"})), "ns", "demo"))
    assert unknown[0] == HTTPStatus.NOT_FOUND
    assert hidden == (unknown[0], unknown[1].replace("other", "demo"))


@pytest.mark.parametrize("name", HOSTILE)
async def test_what_is_no_name_is_refused(name):
    board = StateBoard(demo())
    for page in (workload_page(board, ALL, "ns", name), workload_page(board, ALL, name, "demo")):
        status, line = await problem(page)
        assert status == HTTPStatus.BAD_REQUEST
        assert "is no name of an object" in line


async def test_what_cannot_be_read_is_listed():
    state = with_objects(demo(), PODS, failing_pod("ns", "demo"))
    board = StateBoard(state, problem=ConnectError("connection refused"))
    page = await workload_page(board, ALL, "ns", "demo")
    assert page.unread == (
        "events.events.k8s.io: connection refused",
        "containers of pod demo-0-router-failing: connection refused",
    )
    assert page.set.name == "demo"


async def test_messages_of_failing_containers_are_read():
    board = StateBoard(with_objects(demo(), PODS, failing_pod("ns", "demo")))
    (found,) = (await workload_page(board, ALL, "ns", "demo")).containers
    assert (found.pod, found.state, found.message) == (
        "demo-0-router-failing",
        "ImagePullBackOff",
        "no such image",
    )


async def test_no_more_containers_are_read_than_the_limit(monkeypatch):
    monkeypatch.setattr("grove.timing.CONTAINER_PODS", 2)
    pods = [failing_pod("ns", "demo", f"failing{i}") for i in range(5)]
    page = await workload_page(StateBoard(with_objects(demo(), PODS, *pods)), ALL, "ns", "demo")
    assert len(page.containers) == 2
    assert page.unread == ("containers of 3 more pods, of 5 that fail",)


async def test_cluster_is_read_only_for_shared_claims():
    board = StateBoard(demo())
    await workload_page(board, ALL, "ns", "demo")
    assert board.states_read == 0


async def test_undecodable_set_is_unknown():
    wrong = {"metadata": {"name": "wrong", "namespace": "ns"}, "spec": {"replicas": "many"}}
    board = StateBoard(with_objects(demo(), SETS, wrong))
    assert (await problem(workload_page(board, ALL, "ns", "wrong")))[0] == HTTPStatus.NOT_FOUND
    assert (await workload_page(board, ALL, "ns", "demo")).set.name == "demo"


def of_graph() -> ClusterState:
    """The set `demo` belongs to a graph, which has failed."""
    state = demo()
    (body,) = (msgspec.json.decode(each) for each in state.kind(SETS).items)
    owner = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": GRAPHS.kind,
        "name": "llm",
        "uid": "u",
        "controller": True,
    }
    body["metadata"]["ownerReferences"] = [owner]
    kinds = {**state.kinds, SETS: replace(state.kind(SETS), items=(msgspec.Raw(msgspec.json.encode(body)),))}
    graph = {"metadata": {"name": "llm", "namespace": "ns"}, "spec": {}, "status": {"state": "failed"}}
    return with_objects(replace(state, kinds=kinds), GRAPHS, graph)


async def test_graph_is_shown_only_with_the_right_to_it():
    board = StateBoard(of_graph())
    page = await workload_page(board, ALL, "ns", "demo", graphs=True)
    assert page.status.graph is not None
    assert page.status.graph.name == "llm"
    assert (await workload_page(board, ALL, "ns", "demo")).status.graph is None


async def test_graph_without_the_right_to_it_is_unknown():
    board = StateBoard(of_graph())
    assert (
        await explanation_page(board, ALL, "ns", "graph/llm", graphs=True)
    ).explanation.about.name == "llm"
    hidden = await problem(explanation_page(board, ALL, "ns", "graph/llm"))
    unknown = await problem(explanation_page(board, ALL, "ns", "graph/other", graphs=True))
    assert hidden == (unknown[0], unknown[1].replace("other", "llm"))
