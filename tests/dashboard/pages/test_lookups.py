"""Nodes, search and YAML."""

from __future__ import annotations

import time
from http import HTTPStatus

import msgspec
import pytest
import yaml

from grove import timing
from grove.api.types.pod import Pod
from grove.dashboard.model import NodeCells, Picture
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.node import node_page
from grove.dashboard.pages.object_yaml import object_yaml
from grove.dashboard.pages.search import search_hits
from grove.dashboard.rights import Rights
from grove.explanation.reading import GANGS, GRAPHS
from grove.kube.client.resource import NODES, PODS
from grove.kube.errors import ApiStatus, ConnectError, Forbidden
from tests.cluster_state.states import with_objects
from tests.dashboard.pages.boards import StateBoard
from tests.dashboard.pages.clusters import a_pod, demo, failing_pod, with_pods, with_workload
from tests.dashboard.pages.test_workload import HOSTILE, problem
from tests.views.builders import a_simulator

ALL, TENANT = Rights(), Rights(frozenset({"ns"}))
BLIND = Rights(frozenset({"ns"}), nodes=False)


def a_board() -> StateBoard:
    return StateBoard(with_workload(demo(), a_simulator(), "secret-ns"))


def first_node(board: StateBoard) -> str:
    return str(msgspec.json.decode(board.found.kind(NODES).items[0])["metadata"]["name"])


async def test_node_lists_visible_pods_and_counts_others():
    node = first_node(StateBoard(demo()))
    board = StateBoard(
        with_pods(
            demo(),
            a_pod("ns", "mine", node, 2, "demo-0"),
            a_pod("ns", "soon", "", 4, "demo-0", nominatedNodeName=node),
            a_pod("ns", "plain", node, 0),
            a_pod("secret-ns", "secret", node, 1, "secret-gang"),
            a_pod("secret-ns", "secret-2", node, 1),
        )
    )
    page = node_page(board, TENANT, node)
    assert [(each.name, each.gang, each.gpus, each.reserved) for each in page.pods] == [
        ("soon", "ns/demo-0", 4, True),
        ("mine", "ns/demo-0", 2, False),
        ("plain", "", 0, False),
    ]
    assert (page.others.pods, page.others.gpus) == (2, 2)
    assert "secret" not in msgspec.json.encode(page).decode()
    assert len(node_page(board, ALL, node).pods) == 5


async def test_node_without_the_right_or_unknown_is_refused():
    board = StateBoard(demo())
    for rights, name, status in (
        (BLIND, first_node(board), HTTPStatus.FORBIDDEN),
        (BLIND, "unknown", HTTPStatus.FORBIDDEN),
        (ALL, "unknown", HTTPStatus.NOT_FOUND),
        (ALL, "a/b", HTTPStatus.BAD_REQUEST),
    ):
        with pytest.raises(PageError) as raised:
            node_page(board, rights, name)
        assert raised.value.status == status


def hits(rights: Rights, text: str) -> list[tuple[str, str, str]]:
    return [(each.kind, each.namespace, each.name) for each in search_hits(a_board(), rights, text).hits]


async def test_hits_are_exact_then_prefix_then_substring():
    found = hits(TENANT, "DEMO-0")
    assert found[:2] == [("gang", "ns", "demo-0"), ("gang", "ns", "demo-0-model-0")]
    assert {each[0] for each in found[2:]} == {"pod"}
    assert all(each[1] == "ns" for each in found)
    assert hits(TENANT, "router")[0][0] == "pod"


async def test_search_with_a_slash_finds_namespace_and_name():
    assert hits(ALL, "secret-ns/demo")[0] == ("set", "secret-ns", "demo")
    assert hits(TENANT, "secret-ns/demo") == []


@pytest.mark.parametrize("text", ["", "   ", "no such thing", "a/b/c"])
async def test_search_without_a_hit(text):
    assert hits(ALL, text) == []


async def test_nodes_and_domains_are_found_only_with_the_right():
    board = a_board()
    found = search_hits(board, TENANT, "b0-r1").hits
    domain = next(each for each in found if each.kind == "domain")
    assert (domain.detail, domain.link) == (
        "rack, 2 nodes",
        f"#/map?topology=local&domain=rack/{domain.name}",
    )
    node = first_node(board)
    (hit,) = search_hits(board, TENANT, node).hits[:1]
    assert (hit.kind, hit.link, hit.detail) == ("node", f"#/map?node={node}", "0/8 GPUs used")
    assert search_hits(board, BLIND, node).hits == ()
    assert search_hits(board, BLIND, "b0-r1").hits == ()


async def test_links_open_the_page_of_the_hit():
    waiting = search_hits(StateBoard(demo(running=False)), ALL, "demo-0").hits[0]
    assert waiting.link == "#/waiting/ns/demo-0"
    links = {each.name: each.link for each in search_hits(StateBoard(demo()), ALL, "demo").hits}
    assert links["demo"] == "#/workloads/ns/demo"
    assert links["demo-0"] == "#/map?gang=ns/demo-0"
    pod = next(name for name in links if name.startswith("demo-0-router-"))
    assert links[pod] == f"#/workloads/ns/demo?object=pod/{pod}"


async def test_long_text_is_refused():
    with pytest.raises(PageError) as raised:
        search_hits(a_board(), ALL, "x" * 1_000_000)
    assert raised.value.status == HTTPStatus.BAD_REQUEST
    assert raised.value.message == "the text has 1000000 characters: search for 320 at most"


class LargeBoard(StateBoard):
    """5,000 nodes and 20,000 pods."""

    def __init__(self) -> None:
        super().__init__(demo())
        (pod, *_) = super().objects("ns").pods
        rename = msgspec.structs.replace
        pods = tuple(
            rename(pod, metadata=rename(pod.metadata, name=f"chat-{i}-worker-{i}")) for i in range(20_000)
        )
        self.large = pods
        self.cells = {f"node-{i}": NodeCells({"zone": "z", "rack": f"r{i // 16}"}, 8) for i in range(5_000)}

    def nodes(self) -> dict[str, NodeCells]:
        return self.cells

    def picture(self, rights: Rights) -> Picture:
        raise AssertionError("a search does not need all of a picture")

    def pods(self) -> tuple[Pod, ...]:
        return self.large


async def test_large_cluster_is_searched_fast():
    board, best = LargeBoard(), 1.0
    for _ in range(5):
        begin = time.process_time()
        found = search_hits(board, ALL, "e").hits
        best = min(best, time.process_time() - begin)
    assert len(found) == timing.SEARCH_HITS
    assert node_page(board, ALL, "node-7").pods == ()
    assert best < 0.1  # 30 ms on a quiet machine


async def test_yaml_is_the_object_without_managed_fields():
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "on\none"}
    meta = {"name": "g", "namespace": "ns", "managedFields": [{"manager": "x"}], "annotations": annotations}
    graph = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": meta}
    board = StateBoard(with_objects(demo(), GRAPHS, graph))
    text = await object_yaml(board, TENANT, "ns", "DynamoGraphDeployment", "g")
    assert text.startswith("apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\n")
    assert yaml.safe_load(text)["metadata"] == {
        "name": "g", "namespace": "ns", "annotations": {"kept": "on\none"},
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["podcliqueset", "podcliquescalinggroup", "podclique", "podgang", "pod"])
async def test_each_kind_can_be_read(kind):
    board = StateBoard(demo())
    found = board.objects("ns")
    names = {each.lower(): meta.name for each, meta in found.named()}
    body = yaml.safe_load(await object_yaml(board, TENANT, "ns", kind, names[kind]))
    assert body["metadata"]["name"] == names[kind]


@pytest.mark.parametrize("kind", ["PodGang", "PODGANG", "podgangs", "gang", "pg"])
async def test_kind_is_written_as_for_explain(kind):
    body = yaml.safe_load(await object_yaml(StateBoard(demo()), TENANT, "ns", kind, "demo-0"))
    assert (body["kind"], body["metadata"]["name"]) == ("PodGang", "demo-0")


async def test_pods_of_others_are_unknown():
    board = StateBoard(with_objects(demo(), PODS, a_pod("ns", "other", "n", 0), failing_pod("ns", "demo")))
    unknown = await problem(object_yaml(board, TENANT, "ns", "pod", "no-such"))
    other = await problem(object_yaml(board, TENANT, "ns", "pod", "other"))
    hidden = await problem(object_yaml(board, TENANT, "secret-ns", "pod", "other"))
    assert unknown[0] == HTTPStatus.NOT_FOUND
    assert other[1] == unknown[1].replace("no-such", "other") == hidden[1].replace("secret-ns", "ns")
    assert "ImagePullBackOff" in await object_yaml(board, TENANT, "ns", "pod", "demo-0-router-failing")


@pytest.mark.parametrize("kind", ["secret", "", "deployments", "x" * 1_000_000, "a/b"])
async def test_unknown_kind_is_refused(kind):
    status, line = await problem(object_yaml(StateBoard(demo()), ALL, "ns", kind, "demo"))
    assert status == HTTPStatus.BAD_REQUEST
    assert line.startswith("unknown kind ")


@pytest.mark.parametrize("name", HOSTILE)
async def test_object_with_what_is_no_name_is_refused(name):
    assert (await problem(object_yaml(StateBoard(demo()), ALL, "ns", "pod", name)))[
        0
    ] == HTTPStatus.BAD_REQUEST


async def test_server_that_does_not_answer_is_one_line():
    board = StateBoard(demo(), problem=ConnectError("connection refused"))
    status, line = await problem(object_yaml(board, ALL, "ns", "podgang", "demo-0"))
    assert (status, line) == (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "PodGang ns/demo-0 cannot be read: connection refused",
    )
    board.problem = Forbidden("get podgangs", ApiStatus(code=403, message="no", reason="Forbidden"))
    assert (await problem(object_yaml(board, ALL, "ns", "podgang", "demo-0")))[0] == HTTPStatus.NOT_FOUND


async def test_large_object_is_cut_at_a_line(monkeypatch):
    monkeypatch.setattr(timing, "LONGEST_YAML", 200)
    gang = {
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"list": [f"value {i}" for i in range(100)]},
    }
    text = await object_yaml(StateBoard(with_objects(demo(), GANGS, gang)), ALL, "ns", "podgang", "g")
    *lines, last = text.splitlines()
    assert len("\n".join(lines)) < 200
    assert yaml.safe_load("\n".join(lines))["spec"]["list"][0] == "value 0"
    assert last.startswith("# ")
    assert last.endswith("more characters: kubectl get podgang g -n ns -o yaml")
