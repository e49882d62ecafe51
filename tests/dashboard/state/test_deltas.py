"""Deltas for viewers with different rights, in random histories of a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove import timing
from grove.dashboard.model import Connection, Delta
from grove.dashboard.problems import Problem
from grove.dashboard.rights import Rights
from grove.dashboard.state.changes import Facts
from grove.dashboard.state.visibility import Unread
from grove.reasons.codes import MOMENTARY
from tests.dashboard.state import histories as made
from tests.dashboard.state.histories import BLOCK, RACK, MemoryCluster
from tests.dashboard.state.page import Page
from tests.fuzzing import budget

SECRET = "hidden"
NAMESPACES = ("open", SECRET)
"""Everything in the namespace that some viewers do not see has its name as a part of its own."""
NODES = ("n0", "n1")
VIEWERS = (
    Rights(),
    Rights(nodes=False),
    Rights(frozenset({"open"})),
    Rights(frozenset({"open"}), nodes=False, unread=("nodes: no right",)),
    Rights(frozenset()),
)

MOMENTARY_CODE = sorted(MOMENTARY)[0].value

namespaces = st.sampled_from(NAMESPACES)
nodes = st.sampled_from(NODES)
numbers = st.integers(0, 1)


@st.composite
def workload_changes(draw: Any) -> tuple[Any, ...]:
    """A change of an object in a namespace: what happens, and to what."""
    namespace = draw(namespaces)
    set_name, number = f"{namespace}-a", draw(numbers)
    kind = draw(
        st.sampled_from(["set", "clique", "gang", "pod", "pod", "foreign", "claim", "template", "event"])
    )
    if kind == "set":
        errors = ({"code": "ERR_CREATE_PODS", "description": "refused", "observedAt": made.CREATED},)
        failed = {"lastErrors": errors[: draw(numbers)]}
        body = made.a_set(namespace, set_name, availableReplicas=draw(numbers), **failed)
    elif kind == "clique":
        templates = ("gpus",) * draw(numbers)
        body = made.a_clique(namespace, set_name, gpus=draw(numbers), templates=templates)
    elif kind == "template":
        body = made.a_template(namespace, "gpus", draw(st.integers(1, 2)))
    elif kind == "gang":
        waiting = draw(st.sampled_from(["", "GangTooLarge", MOMENTARY_CODE]))
        phase = draw(st.sampled_from(["Pending", "Running"]))
        body = made.a_gang(namespace, set_name, phase=phase, waiting=waiting)
    elif kind == "pod":
        node, nominated = draw(st.sampled_from([("", ""), ("", "n0"), ("", "n1"), ("n0", ""), ("n1", "")]))
        state = {"node": node, "nominated": nominated, "ready": draw(st.booleans())}
        body = made.gang_pod(namespace, set_name, number, **state)
    elif kind == "foreign":
        body, kind = made.a_pod(made.meta(f"{namespace}-foreign", namespace), draw(nodes), gpus=1), "pod"
    elif kind == "claim":
        users = draw(st.sampled_from([(), (f"{set_name}-0-worker-0",), (f"{namespace}-foreign",)]))
        body = made.a_claim(namespace, f"{namespace}-claim", draw(nodes), 0, *users)
    else:
        about = f"{set_name}-0"
        body = made.an_event(namespace, f"{namespace}-event-{number}", about, draw(st.integers(0, 59)))
    return (draw(st.sampled_from(["put", "put", "put", "delete"])), kind, body)


@st.composite
def cluster_changes(draw: Any) -> tuple[Any, ...]:
    """A change of the cluster itself."""
    kind = draw(st.sampled_from(["node", "node", "topology", "class", "slice", "facts", "clock"]))
    if kind == "node":
        taint = {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]} if draw(st.booleans()) else {}
        spec = {"unschedulable": draw(st.booleans()), **taint}
        body = made.a_node(
            draw(nodes), draw(st.sampled_from(["r0", "r1"])), draw(st.sampled_from([0, 8])), **spec
        )
    elif kind == "topology":
        levels = draw(st.sampled_from([(RACK,), (BLOCK, RACK), (BLOCK,)]))
        body = made.a_topology("t", *levels)
    elif kind == "class":
        body = made.a_class()
    elif kind == "slice":
        body = made.a_slice(draw(nodes), draw(st.integers(1, 4)))
    elif kind == "facts":
        keys = frozenset({(each, f"{each}-broken") for each in draw(st.sets(namespaces))})
        unread = Unread(
            (Problem("pods", f"no right in {SECRET} (403)", SECRET),) if draw(st.booleans()) else (),
            {"podgangs": keys} if keys else {},
        )
        broken = Connection(connected=False, problem=f"{SECRET}: refused")
        return ("facts", Facts(draw(st.sampled_from((Connection(), broken))), unread=unread))
    else:
        return ("clock", draw(st.sampled_from([1.0, timing.MOMENT])))
    return (draw(st.sampled_from(["put", "put", "delete"])), kind, body)


steps = st.one_of(
    workload_changes(),
    workload_changes(),
    cluster_changes(),
    st.just(("refresh",)),
    st.just(("refresh",)),
    st.tuples(st.just("open"), st.sampled_from(VIEWERS)),
    st.tuples(st.just("read"), st.integers(0, 9)),
)


class Reader:
    """A page that reads its deltas when it has time for it."""

    def __init__(self, cluster: MemoryCluster, rights: Rights) -> None:
        self.rights, self._board = rights, cluster.board
        self.page = Page(self._board.picture(rights))
        self._stream = self._board.deltas(rights, self.page.version)
        self._next: asyncio.Future[Delta | None] | None = None

    async def read(self) -> None:
        """Read what has been sent."""
        while True:
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._stream))  # type: ignore[arg-type]
            for _ in range(3):
                await asyncio.sleep(0)
            if not self._next.done():
                return
            delta, self._next = self._next.result(), None
            assert delta is not None
            assert delta != Delta(delta.version, delta.now), "nothing is not sent"
            self.page.apply(delta)

    async def end(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})


async def happen(cluster: MemoryCluster, readers: list[Reader], step: tuple[Any, ...]) -> None:
    match step:
        case ("put", kind, body):
            cluster.put(kind, body)
        case ("delete", kind, body):
            cluster.delete(kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        case ("facts", facts):
            cluster.facts = facts
        case ("clock", seconds):
            cluster.now += seconds
        case ("refresh",):
            cluster.refresh()
        case ("open", rights):
            readers.append(Reader(cluster, rights))
        case ("read", number) if readers:
            await readers[number % len(readers)].read()


def started() -> MemoryCluster:
    """A cluster with a gang in each namespace."""
    cluster = MemoryCluster()
    for node in NODES:
        cluster.put("node", made.a_node(node, gpus=0))
        cluster.put("slice", made.a_slice(node))
    cluster.put("class", made.a_class())
    cluster.put("topology", made.a_topology("t", BLOCK, RACK))
    for each in NAMESPACES:
        cluster.put("set", made.a_set(each, f"{each}-a"))
        cluster.put("clique", made.a_clique(each, f"{each}-a", templates=("gpus",)))
        cluster.put("template", made.a_template(each, "gpus"))
        cluster.put("gang", made.a_gang(each, f"{each}-a"))
        cluster.put("pod", made.gang_pod(each, f"{each}-a", 0, nominated="n0"))
    cluster.refresh()
    return cluster


def without_revisions(sets: dict[str, Any]) -> dict[str, Any]:
    return {key: replace(each, revision=0) for key, each in sets.items()}


@budget(100)
@given(st.lists(steps, min_size=25, max_size=50))
def test_pictures_with_their_deltas_equal_new_pictures(history):
    async def run() -> None:
        cluster = started()
        readers = [Reader(cluster, each) for each in VIEWERS]
        for step in history:
            await happen(cluster, readers, step)
        cluster.facts = replace(cluster.facts, topologies=cluster.observed.topologies)
        cluster.refresh()
        fresh = cluster.again().board
        for reader in readers:
            await reader.read()
            page, rights = reader.page, reader.rights
            new, now = Page(fresh.picture(rights)), Page(cluster.board.picture(rights))
            assert page.contents == now.contents
            assert page.contents[:3] == new.contents[:3]
            assert without_revisions(page.sets) == without_revisions(new.sets)
            if rights.namespaces is not None:
                assert SECRET not in "".join(page.sent), "what a viewer must not see is never sent"
            if not rights.nodes:
                assert not any(name in "".join(page.sent) for name in NODES)
            await reader.end()

    asyncio.run(run())


def opened(cluster: MemoryCluster) -> str:
    return cluster.board.picture(Rights()).version


async def first_of(cluster: MemoryCluster, rights: Rights, since: str) -> Delta | None:
    return await asyncio.wait_for(anext(cluster.board.deltas(rights, since)), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", ["", "x", "0.1", "{epoch}", "{epoch}.", "{epoch}.-1", "{epoch}.99", "{epoch}.²", "{epoch}.1e3"]
)
async def test_stream_of_an_unknown_version_is_reset(wrong):
    cluster = MemoryCluster()
    epoch = opened(cluster).partition(".")[0]
    assert await first_of(cluster, Rights(), wrong.format(epoch=epoch)) is None


async def test_stream_of_another_process_or_of_other_rights_is_reset():
    one, other = MemoryCluster(), MemoryCluster()
    assert await first_of(one, Rights(), opened(other)) is None
    assert await first_of(one, Rights(nodes=False), opened(one)) is None


async def test_reader_that_was_away_too_long_is_reset(monkeypatch):
    monkeypatch.setattr(timing, "DASHBOARD_CHANGES", 3)
    cluster = MemoryCluster()
    versions = [opened(cluster)]
    for number in range(4):
        cluster.put("node", made.a_node(f"n{number}"))
        cluster.refresh()
        versions.append(opened(cluster))
    assert await first_of(cluster, Rights(), versions[0]) is None
    found = await first_of(cluster, Rights(), versions[1])
    assert found is not None
    assert sorted(found.nodes) == ["n1", "n2", "n3"]  # several changes as one delta


async def test_changes_are_not_kept_without_bound(monkeypatch):
    monkeypatch.setattr(timing, "DASHBOARD_CHANGED_PARTS", 10)
    cluster = MemoryCluster()
    since = opened(cluster)
    for number in range(20):
        cluster.put("node", made.a_node(f"n{number}"))
    cluster.refresh()
    assert await first_of(cluster, Rights(), since) is None


async def test_change_without_an_effect_is_not_sent():
    cluster = MemoryCluster()
    cluster.put("node", made.a_node("n0"))
    cluster.refresh()
    since = opened(cluster)
    cluster.put("node", {**made.a_node("n0"), "spec": {"podCIDR": "10.0.0.0/24"}})
    cluster.put("pod", made.a_pod(made.meta("waits", "open")))
    cluster.refresh()
    assert opened(cluster) == since


async def test_change_that_is_taken_back_is_not_sent():
    cluster = MemoryCluster()
    cluster.put("node", made.a_node("n0"))
    cluster.refresh()
    since = opened(cluster)
    for node in (made.a_node("n0", "r1"), made.a_node("n0"), made.a_node("n1")):
        cluster.put("node", node)
        cluster.refresh()
    found = await first_of(cluster, Rights(), since)
    assert found is not None
    assert list(found.nodes) == ["n1"]


async def test_many_changes_of_pods_are_one_delta():
    cluster = MemoryCluster()
    cluster.put("node", made.a_node("n0"))
    cluster.refresh()
    since = opened(cluster)
    for number in range(1000):
        cluster.put("pod", made.a_pod(made.meta(f"p{number % 7}", "open"), "n0", gpus=number % 2))
    cluster.refresh()
    found = await first_of(cluster, Rights(), since)
    assert found is not None
    assert [(use.pods, use.gpus) for use in found.nodes["n0"].uses] == [(7, 4)]
    assert cluster.refresher.history.number == 2


async def test_changes_with_long_texts_are_not_kept_without_bound(monkeypatch):
    monkeypatch.setattr(timing, "DASHBOARD_CHANGED_BYTES", 2_000)
    cluster = MemoryCluster()
    versions = [opened(cluster)]
    for number in range(3):
        cluster.put("event", made.an_event("open", f"e{number}", "g") | {"note": "x" * 900})
        cluster.refresh()
        versions.append(cluster.board.picture(Rights()).version)
    assert await first_of(cluster, Rights(), versions[0]) is None
    assert await first_of(cluster, Rights(), versions[2]) is not None


async def test_reader_that_missed_many_parts_is_reset(monkeypatch):
    monkeypatch.setattr(timing, "DASHBOARD_MISSED_PARTS", 10)
    cluster = MemoryCluster()
    since = opened(cluster)
    for number in range(20):
        cluster.put("node", made.a_node(f"n{number}"))
    cluster.refresh()
    found = await first_of(cluster, Rights(), since)
    assert found is not None, "one change is not merged"
    assert len(found.nodes) == 20
    cluster.put("node", made.a_node("n0", unschedulable=True))
    cluster.refresh()
    assert await first_of(cluster, Rights(), since) is None


async def test_long_messages_of_workloads_are_cut():
    cluster, long = MemoryCluster(), "x" * 30_000
    error = {"code": "ERR_CREATE_PODS", "description": long, "observedAt": made.CREATED}
    cluster.put("set", made.a_set("open", "a", lastErrors=[error]))
    cluster.put("clique", made.a_clique("open", "a"))
    gang = made.a_gang("open", "a", waiting="GangTooLarge")
    gang["status"]["conditions"][0]["message"] = long
    cluster.put("gang", gang)
    cluster.refresh()
    found = cluster.board.picture(Rights())
    messages = [each.message for each in found.sets["open/a"].reasons]
    waiting = found.gangs["open/a-0"].waiting
    assert waiting is not None
    assert messages
    assert max(map(len, (*messages, waiting.message))) == timing.SHOWN_MESSAGE


async def test_versions_do_not_count_the_changes_of_others():
    cluster, rights, versions = MemoryCluster(), Rights(frozenset({"open"})), []
    for number in range(5):
        cluster.put("set", made.a_set(SECRET, "a", availableReplicas=number))
        cluster.refresh()
        versions.append(cluster.board.picture(rights).version.partition(".")[2])
    assert len({*versions}) == 5
    assert all(len(each) == 16 for each in versions)  # random, so that two of them have no distance
