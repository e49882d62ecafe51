"""Summaries of nodes, gangs and sets, and what of them viewers see."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.types.clustertopology import ClusterTopology
from grove.cluster_state.kinds import TOPOLOGIES
from grove.cluster_state.model import ClusterState, KindState
from grove.cluster_state.operator_setup import operator_setup
from grove.dashboard.model import Connection, LevelLabel, NodeCells, TopologySummary, Use
from grove.dashboard.problems import CANNOT_READ, MAY_NOT_LIST, Problem
from grove.dashboard.rights import Rights
from grove.dashboard.state.snapshot import snapshot_board
from grove.dashboard.state.summaries import topology_summary
from grove.dashboard.state.visibility import Unread, unread_lines, visible_cells, visible_connection
from grove.kube.client.resource import LEASES, NODES, PODS
from grove.kube.errors import NotFound
from grove.operator.observers.cluster.free_slots import accelerator_names
from grove.views.topology.node_load import node_loads
from tests.cluster_state.states import SETS, shaped, unreadable, with_objects
from tests.dashboard.state import histories as made
from tests.dashboard.state.histories import BLOCK, RACK, MemoryCluster

OPEN = Rights(frozenset({"open"}))


def cells(cluster: MemoryCluster, node: str = "n0", rights: Rights | None = None) -> NodeCells:
    cluster.refresh()
    return cluster.board.picture(rights or Rights()).nodes[node]


async def test_node_with_gangs_reservations_and_pods_of_others():
    cluster = MemoryCluster()
    cluster.put("topology", made.a_topology("t", BLOCK, RACK))
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "maintenance", "effect": "NoExecute"},
        {"key": "maintenance", "effect": "NoSchedule"},
        {"key": "preferred", "effect": "PreferNoSchedule"},
    ]
    body = made.a_node("n0", "r7", ready=False, unschedulable=True, taints=taints)
    body["metadata"]["labels"]["nvidia.com/gpu.clique"] = "fabric.1"
    cluster.put("node", body)
    cluster.put("pod", made.gang_pod("open", "a", 0, node="n0"))
    cluster.put("pod", made.gang_pod("open", "a", 1, nominated="n0"))
    cluster.put("pod", made.gang_pod("hidden", "b", 0, node="n0", gpus=1))
    cluster.put("pod", made.gang_pod("hidden", "b", 1, nominated="n0", gpus=1))
    cluster.put("pod", made.a_pod(made.meta("other", "open"), "n0", gpus=1))
    cluster.put("pod", made.a_pod(made.meta("daemon", "open"), "n0", gpus=0))
    cluster.put("pod", made.a_pod(made.meta("preempting", "open"), nominated="n0", gpus=0))
    expected = NodeCells(
        {BLOCK: "b0", RACK: "r7"},
        gpus=8,
        ready=False,
        cordoned=True,
        taints=("maintenance",),
        partition="fabric.1",
        uses=(
            Use("hidden/b-0", 1, 1),
            Use("hidden/b-0", 1, 1, reserved=True),
            Use("open/a-0", 2, 1),
            Use("open/a-0", 2, 1, reserved=True),
            Use("", 1, 3),
        ),
    )
    assert cells(cluster) == expected
    seen = (Use("open/a-0", 2, 1), Use("open/a-0", 2, 1, reserved=True), Use("", 2, 4), Use("", 1, 1, True))
    assert cells(cluster, rights=OPEN) == msgspec.structs.replace(expected, uses=seen)


async def test_devices_of_claims_belong_to_the_gang_of_their_pods():
    cluster = MemoryCluster()
    cluster.put("node", made.a_node("n0", gpus=0))
    cluster.put("class", made.a_class())
    cluster.put("slice", made.a_slice("n0", 4))
    cluster.put("claim", made.a_claim("open", "c0", "n0", 0, "a-0-worker-0"))
    cluster.put("claim", made.a_claim("open", "c1", "n0", 1, "other"))
    assert (cells(cluster).gpus, cells(cluster).uses) == (4, (Use("", 2, 0),))
    cluster.put("pod", made.gang_pod("open", "a", 0, node="n0", gpus=0))
    assert cells(cluster).uses == (Use("open/a-0", 1, 1), Use("", 1, 0))
    cluster.put("claim", made.a_claim("open", "c1", "n0", 1, "a-0-worker-0"))
    assert cells(cluster).uses == (Use("open/a-0", 2, 1),)
    cluster.delete("claim", "open", "c1")
    assert cells(cluster).uses == (Use("open/a-0", 1, 1),)


async def test_uses_add_up_to_the_load_of_the_node():
    cluster = MemoryCluster()
    cluster.put("class", made.a_class())
    for name, gpus in (("n0", 0), ("n1", 8)):
        cluster.put("node", made.a_node(name, gpus=gpus))
        cluster.put("slice", made.a_slice(name, 4))
        cluster.put("pod", made.gang_pod("open", name, 0, node=name))
        cluster.put("pod", made.gang_pod("open", name, 1, nominated=name))
        cluster.put("pod", made.a_pod(made.meta(f"other-{name}", "open"), name, gpus=1))
        cluster.put("claim", made.a_claim("open", f"c-{name}", name, 0, f"{name}-0-worker-0"))
        cluster.put("claim", made.a_claim("open", f"d-{name}", name, 1, f"other-{name}"))
    cluster.refresh()
    view, pods = cluster.observed.view, cluster.observed.caches.cluster_pods
    loads = node_loads(view, pods, ["n0", "n1"], accelerator_names(operator_setup().fabrics))
    for load in loads:
        found = cells(cluster, load.name)
        ours = sum(use.gpus for use in found.uses if use.gang)
        assert (found.gpus, ours) == (load.gpus, load.ours)
        assert sum(use.gpus for use in found.uses) == load.ours + load.others


@pytest.mark.parametrize(
    ("uses", "seen"),
    [
        ((Use("", 1, 1),), (Use("", 1, 1),)),
        ((Use("open/a", 1, 1), Use("", 1, 1)), (Use("open/a", 1, 1), Use("", 1, 1))),
        ((Use("hidden/a", 1, 1),), (Use("", 1, 1),)),
        ((Use("hidden/a", 1, 1), Use("hidden/b", 2, 3), Use("", 4, 5)), (Use("", 7, 9),)),
        ((Use("hidden/a", 1, 1, True), Use("", 4, 5)), (Use("", 4, 5), Use("", 1, 1, True))),
        ((Use("openly/a", 1, 1), Use("open/a", 1, 2)), (Use("open/a", 1, 2), Use("", 1, 1))),
    ],
)
def test_uses_that_a_viewer_sees(uses, seen):
    assert visible_cells(NodeCells(uses=uses), OPEN) == NodeCells(uses=seen)
    assert visible_cells(NodeCells(uses=uses), Rights()) == NodeCells(uses=uses)
    assert visible_cells(NodeCells(uses=uses), Rights(nodes=False)) is None


def test_undecodable_objects_are_named_where_they_are_visible():
    broken = {"podgangs": frozenset({("open", "x"), ("hidden", "y"), ("", "")})}
    assert unread_lines(Unread(undecodable=broken), Rights()) == (
        "podgangs: cannot be decoded: hidden/y, open/x",
    )
    assert unread_lines(Unread(undecodable=broken), OPEN) == ("podgangs: cannot be decoded: open/x",)


@pytest.mark.parametrize("rights", [Rights(), replace(OPEN, own=True)])
def test_viewer_of_everything_or_own_server_reads_whole_problems(rights):
    problems = tuple(Problem("pods", f"no right in {each} (403)", each) for each in ("open", "hidden", ""))
    assert unread_lines(Unread(problems), rights) == tuple(f"pods: {each.text}" for each in problems)
    broken = Connection(connected=False, problem="hidden: refused", since="2027-01-15T08:00:00Z")
    assert visible_connection(broken, rights) == broken


def test_problems_of_other_namespaces_are_general_lines():
    problems = [Problem("pods", f"no right in {each} (403)", each) for each in ("open", "hidden", "hidden-2")]
    problems += [Problem("nodes", "hidden is away (500)")]
    found = unread_lines(Unread(tuple(problems), kinds=("podgangs: not served",)), OPEN)
    assert found == (
        "pods: no right in open (403)",
        f"pods: {MAY_NOT_LIST}",
        f"nodes: {CANNOT_READ}",
        "podgangs: not served",
    )
    broken = Connection(connected=False, problem="hidden: refused", since="2027-01-15T08:00:00Z")
    seen = visible_connection(broken, OPEN)
    assert (seen.connected, seen.since) == (False, broken.since)
    assert "hidden" not in seen.problem


@pytest.mark.parametrize(
    ("levels", "shown"),
    [
        ((("zone", "z"), ("rack", "r")), (("zone", "z"), ("rack", "r"))),
        ((("rack", "r"), ("host", "kubernetes.io/hostname"), ("numa", "n")), (("rack", "r"),)),
        ((("rack", "r"), ("machine", "kubernetes.io/hostname")), (("rack", "r"),)),
        ((("host", "my/host"),), ()),
    ],
)
def test_levels_of_a_topology_end_at_its_hosts(levels, shown):
    spec = {"levels": [{"domain": domain, "key": key} for domain, key in levels]}
    topology = msgspec.convert({"metadata": {"name": "t"}, "spec": spec}, ClusterTopology)
    assert topology_summary(topology) == TopologySummary("t", tuple(LevelLabel(*each) for each in shown))


def with_gangs(phase: str, waiting: str) -> MemoryCluster:
    """A set with two gangs: the first in this state, the second waits."""
    cluster = MemoryCluster()
    cluster.put("set", made.a_set("open", "a", 2, conditions=[condition("GangTooLarge")]))
    for replica in range(2):
        cluster.put("clique", made.a_clique("open", "a", replica))
        cluster.put("pod", made.gang_pod("open", "a", 0, replica, ready=not replica))
    cluster.put("gang", made.a_gang("open", "a", 0, phase, waiting=waiting))
    cluster.put("gang", made.a_gang("open", "a", 1, waiting="GangTooLarge"))
    cluster.refresh()
    return cluster


def condition(code: str) -> dict[str, str]:
    return {
        "type": "Waiting",
        "status": "True",
        "reason": code,
        "message": "PodGang a-1: too large",
        "lastTransitionTime": made.CREATED,
    }


@pytest.mark.parametrize(
    ("phase", "waiting", "code"),
    [
        ("Running", "GangTooLarge", None),
        ("Succeeded", "", None),
        ("Starting", "", None),  # what the other gang waits for is not its reason
        ("Pending", "ResourceShort", None),  # no reason that is known
        ("Pending", "GangTooLarge", "GangTooLarge"),
    ],
)
async def test_first_reason_of_a_gang(phase, waiting, code):
    picture = with_gangs(phase, waiting).board.picture(Rights())
    gang, other = picture.gangs["open/a-0"], picture.gangs["open/a-1"]
    assert (gang.waiting.code if gang.waiting is not None else None) == code
    assert bool(gang.waiting_since) == (code is not None)
    assert (gang.set, gang.phase, gang.pods, gang.ready, gang.gpus) == ("open/a", phase, 2, 1, 4)
    assert other.waiting.about.name == "a-1"
    assert picture.sets["open/a"].reasons[0].code == "GangTooLarge"
    assert picture.sets["open/a"].verdict == "Waiting"


async def test_gang_without_labels_of_a_set_is_shown():
    cluster = MemoryCluster()
    cluster.put("gang", {**made.a_gang("open", "a"), "metadata": made.meta("alone", "open")})
    cluster.refresh()
    assert cluster.board.picture(Rights()).gangs["open/alone"].pods == 2


async def test_template_that_cannot_be_read_counts_no_gpus():
    cluster = with_gangs("Pending", "")
    body = made.a_clique("open", "a")
    body["spec"]["podSpec"]["containers"][0]["resources"]["limits"] = {made.GPU: "many"}
    cluster.put("clique", body)
    cluster.refresh()
    assert cluster.board.picture(Rights()).gangs["open/a-0"].gpus == 0


async def test_revision_grows_with_every_change_of_a_set():
    cluster, revisions = with_gangs("Pending", ""), []
    for change in range(3):
        if change == 1:
            cluster.put("pod", made.gang_pod("open", "a", 1, node=""))
        elif change == 2:
            cluster.delete("set", "open", "a")
            cluster.refresh()
            cluster.put("set", made.a_set("open", "a", 2))
        cluster.refresh()
        revisions.append(cluster.board.picture(Rights()).sets["open/a"].revision)
    assert revisions == sorted(set(revisions))


async def test_revision_does_not_depend_on_other_namespaces():
    alone, beside = MemoryCluster(), MemoryCluster()
    for number in range(5):
        beside.put("set", made.a_set("hidden", "b", availableReplicas=number))
    beside.refresh()
    beside.delete("set", "hidden", "b")
    beside.refresh()
    found = []
    for cluster in (alone, beside):
        cluster.put("set", made.a_set("open", "a"))
        cluster.refresh()
        found.append(cluster.board.picture(Rights()).sets["open/a"].revision)
    assert found[0] == found[1]


async def test_board_of_a_snapshot():
    body = made.a_set("open", "demo")
    state = with_objects(shaped("1x1x2x2", 8, "local"), SETS, body)
    state = with_objects(state, PODS, made.gang_pod("open", "demo", 0, node="z0-b0-r0-h0"))
    board = snapshot_board(state)
    picture = board.picture(Rights())
    assert (picture.source.live, picture.now) == (False, picture.source.taken_at)
    assert len(picture.nodes) == 4
    assert picture.nodes["z0-b0-r0-h0"].uses == (Use("open/demo-0", 2, 1),)
    assert [each.name for each in picture.topologies] == ["local"]
    assert list(picture.sets) == ["open/demo"]
    assert board.namespaces() == {"open"}
    assert [each.name for each in board.node_pods("z0-b0-r0-h0")] == ["demo-0-worker-0"]
    assert (await board.read(SETS, "open", "demo"))["metadata"]["name"] == "demo"
    with pytest.raises(NotFound, match="open/none: the snapshot does not have this object"):
        await board.read(SETS, "open", "none")
    assert len(board.objects("open").sets) == 1
    assert await board.events("open") == ()


async def test_snapshot_without_nodes_and_leases_says_so():
    state = unreadable(shaped("1x1x1x1", 8), NODES, "no right to list nodes (403 Forbidden)")
    state = unreadable(state, LEASES, "no right to list leases (403 Forbidden)")
    picture = snapshot_board(state).picture(Rights())
    assert (picture.nodes, picture.viewer.nodes, picture.operator) == ({}, False, None)
    assert any("no right to list nodes" in line for line in picture.unread)


async def test_empty_snapshot_is_a_picture():
    empty = ClusterState({TOPOLOGIES: KindState(TOPOLOGIES)}, 1.8e9, source="/some/folder/file.json")
    picture = snapshot_board(empty).picture(Rights())
    assert (picture.nodes, picture.sets, picture.source.name) == ({}, {}, "file.json")


async def test_large_set_is_summarized_less_often(monkeypatch):
    cluster = with_gangs("Pending", "")
    monkeypatch.setattr(timing, "DASHBOARD_LARGE_SET", 2)
    monkeypatch.setattr(timing, "DASHBOARD_PAUSE_PER_POD", 1.0)
    summaries = []
    for ready, seconds in ((False, 0), (True, 0), (True, 1), (True, 1)):
        cluster.put("pod", made.gang_pod("open", "a", 0, 1, ready=ready))
        cluster.now += seconds
        cluster.refresh()
        summaries.append(cluster.board.picture(Rights()).sets["open/a"].summary.rpartition(", ")[2])
    assert summaries == ["1/4 pods ready"] * 3 + ["2/4 pods ready"]
