"""What placement knows about nodes and their use: kept up to date, and equal to a new count of all pods."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from grove.api.types import kubernetes_objects
from grove.operator.caches.cluster_pods import ClusterPod, ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.topology.placement.model import Node, Taint
from tests.operator.cluster_builders import OURS, listed, listed_nodes, node, pod


def apply(nodes: Nodes, kind: str, found: kubernetes_objects.Node) -> None:
    assert nodes._listed is not None
    nodes._listed.cache.apply_event(kind, found)


def test_node_is_read_in_units_of_the_scheduler():
    view = ClusterView(listed_nodes(node(), node("b", ready="Unknown")), ClusterPods(), Devices())
    allocatable = {"cpu": 1500, "memory": 1024, "nvidia.com/gpu": 8}
    assert view.node("a") == Node(
        "a", {"zone": "z"}, allocatable, (Taint("k", "v", "NoExecute"),), ready=True, unschedulable=True
    )
    assert view.node("b").ready is False
    assert view.node("missing") is None


def test_node_with_unreadable_quantity_has_none_of_it():
    with capture_logs() as logs:
        found = ClusterView(listed_nodes(node(cpu="many", memory="1")), ClusterPods(), Devices()).node("a")
    assert found.allocatable == {"memory": 1}
    assert [(log["key"], log["reason"][:4]) for log in logs] == [("a", "cpu:")]


def test_node_is_the_same_object_until_it_changes():
    nodes = listed_nodes(node())
    view = ClusterView(nodes, ClusterPods(), Devices())
    first = view.node("a")
    apply(nodes, "MODIFIED", node(version=2))
    assert view.node("a") is first
    apply(nodes, "MODIFIED", node(version=3, cpu="2"))
    assert view.node("a").allocatable == {"cpu": 2000}
    apply(nodes, "DELETED", node(version=4))
    assert view.node("a") is None


def test_nodes_of_a_fabric_domain_are_those_of_its_bound_pods():
    domain = {**OURS, "grove.io/computedomain": "team"}
    pods = listed(pod("one", node="a", labels=domain), pod("two", labels=domain), pod("other", node="b"))
    view = ClusterView(listed_nodes(node()), pods, Devices())
    assert view.nodes_of_domain("n", "team") == {"a"}
    assert view.nodes_of_domain("elsewhere", "team") == frozenset()
    pods.apply_event("MODIFIED", pod("two", 2, node="b", labels=domain))
    assert view.nodes_of_domain("n", "team") == {"a", "b"}
    leaving = pod("one", 3, node="a", labels=domain, deletionTimestamp="2026-01-01T00:01:00Z")
    pods.apply_event("MODIFIED", leaving)
    assert view.nodes_of_domain("n", "team") == {"b"}
    pods.apply_event("DELETED", pod("two", 4, node="b", labels=domain))
    assert view.nodes_of_domain("n", "team") == frozenset()


def test_changed_labels_are_announced_by_node():
    nodes = listed_nodes(node())
    view, announced = ClusterView(nodes, ClusterPods(), Devices()), []
    view.subscribe_labels(announced.append)
    apply(nodes, "MODIFIED", node(version=2, cpu="2"))
    assert announced == ["a"], "its labels were never read"
    view.node("a")
    apply(nodes, "MODIFIED", node(version=3, cpu="3"))
    assert announced == ["a"]
    apply(nodes, "MODIFIED", node(version=4, cpu="3", zone="y"))
    assert announced == ["a", "a"]
    apply(nodes, "DELETED", node(version=5))
    assert announced == ["a", "a", "a"]


def test_labels_are_listed_only_with_their_nodes():
    view = ClusterView(Nodes(placement=True), ClusterPods(), Devices())
    assert not view.require(())
    assert ClusterView(listed_nodes(node()), ClusterPods(), Devices()).require({"zone"})
    assert not ClusterView(listed_nodes(node()), ClusterPods(), Devices()).require({"rack"})


def test_usable_nodes_with_their_use():
    usable = [node(name, unschedulable=False) for name in ("a", "b", "c")]
    cordoned, unready = node("d"), node("e", ready="False", unschedulable=False)
    gpus = {"requests": {"nvidia.com/gpu": "3"}}
    pods = listed(
        pod("p", node="a", containers=[{"name": "main", "resources": gpus}]),
        pod("q", node="a", priority=5, containers=[{"name": "main", "resources": gpus}]),
        pod("r", node="b"),
    )
    view = ClusterView(listed_nodes(*usable, cordoned, unready), pods, Devices())
    used = {
        found.name: [each.get("nvidia.com/gpu", 0) for each in by.values()]
        for found, by in view.usable_nodes()
    }
    assert used == {"a": [3, 3], "b": [0], "c": []}


def test_use_of_node_by_priority():
    pods = listed(
        pod("p", node="a"),
        pod("q", node="a", cpu="500m"),
        pod("r", node="a", priority=-5, labels=OURS),
        pod("s", priority=7, status={"nominatedNodeName": "a"}),
        pod("t", labels=OURS, status={"nominatedNodeName": "a"}),
        pod("u", node="b"),
        pod("v"),
    )
    view = ClusterView(listed_nodes(node()), pods, Devices())
    assert view.use_by_priority("a") == {
        0: {"cpu": 1500, "pods": 2},
        -5: {"cpu": 1000, "pods": 1},
        7: {"cpu": 1000, "pods": 1},
    }
    assert view.use_by_priority("b") == {0: {"cpu": 1000, "pods": 1}}
    assert view.use_by_priority("c") == {}


def test_returned_use_does_not_change_later():
    pods = listed(pod(node="a"))
    view = ClusterView(listed_nodes(node()), pods, Devices())
    before = view.use_by_priority("a")
    pods.apply_event("DELETED", pod(version=2, node="a"))
    assert (before, view.use_by_priority("a")) == ({0: {"cpu": 1000, "pods": 1}}, {})


def test_changed_nodes_are_taken_once():
    nodes, pods = listed_nodes(node(), node("b")), listed(pod("p", node="c"))
    view = ClusterView(nodes, pods, Devices())
    assert view.take_changed_nodes() == {"a", "b", "c"}
    assert view.take_changed_nodes() == set()
    pods.apply_event("ADDED", pod("q", version=2))
    assert view.take_changed_nodes() == set()
    pods.apply_event("MODIFIED", pod("q", version=3, status={"nominatedNodeName": "b"}))
    assert view.take_changed_nodes() == {"b"}
    pods.apply_event("MODIFIED", pod("q", version=4, node="a"))
    assert view.take_changed_nodes() == {"a", "b"}
    pods.apply_event("MODIFIED", pod("q", version=5, node="a", deletionTimestamp="2026-01-01T00:00:10Z"))
    assert view.take_changed_nodes() == set(), "a terminating pod still uses its node"
    apply(nodes, "DELETED", node("b", 2))
    assert view.take_changed_nodes() == {"b"}


def test_unbound_pods_of_others_by_scheduler():
    pods = listed(
        pod("waits"),
        pod("other", schedulerName="kai"),
        pod("bound", node="a"),
        pod("ours", labels=OURS),
        pod("gated", schedulingGates=[{"name": "g"}]),
    )
    view = ClusterView(listed_nodes(node()), pods, Devices())
    assert [each.name for each in view.unbound_foreign({"default-scheduler"})] == ["waits"]
    assert {each.name for each in view.unbound_foreign({"default-scheduler", "kai"})} == {"waits", "other"}
    pods.apply_event("MODIFIED", pod("waits", version=2, node="a"))
    pods.apply_event("MODIFIED", pod("gated", version=3))
    assert [each.name for each in view.unbound_foreign({"default-scheduler"})] == ["gated"]
    pods.apply_event("DELETED", pod("gated", version=4))
    assert list(view.unbound_foreign({"default-scheduler"})) == []


def test_unbound_pod_could_go_where_labels_and_taints_allow():
    tolerant = [{"operator": "Exists"}]
    pods = listed(
        pod("yes", tolerations=tolerant, nodeSelector={"unknown": "x"}),
        pod("no", tolerations=tolerant, nodeSelector={"zone": "y"}),
        pod("tainted"),
        pod("bound", node="a"),
    )
    view = ClusterView(listed_nodes(node()), pods, Devices())
    assert {each.name: view.could_go(each, "a") for each in pods} == {
        "yes": True,
        "no": False,
        "tainted": False,
        "bound": False,
    }
    assert not view.could_go(pods.get("n", "yes"), "missing")


def test_listener_is_called_once_everything_is_listed():
    nodes, pods, calls = Nodes(placement=True), ClusterPods(), []
    view = ClusterView(nodes, pods, Devices())
    assert nodes._more_required.is_set(), "the view needs nodes"
    view.subscribe(lambda: calls.append(view.synced))
    pods.replace(map(pods.compact, [pod("p"), pod("q")]), "1")
    assert (view.synced, calls) == (False, [])
    listing = nodes._new_list()
    listing.cache.replace([node()], "1")
    nodes._use(listing)
    assert set(calls) == {True}
    calls.clear()
    pods.apply_event("MODIFIED", pod("p", version=2, labels=OURS, status={"nominatedNodeName": "a"}))
    assert (len(calls), view.pod("n", "p").nominated_node) == (1, "a")
    pods.apply_event("MODIFIED", pod("p", version=3, labels=OURS, status={"nominatedNodeName": "a"}))
    assert len(calls) == 1, "nothing that is read has changed"


def test_last_list_calls_the_listener():
    pods, calls = ClusterPods(), []
    view = ClusterView(listed_nodes(node()), pods, Devices())
    view.subscribe(lambda: calls.append(1))
    pods.replace((), "1")
    assert (view.synced, calls) == (True, [1])


_STEP = st.tuples(
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "RELIST"]),
    st.sampled_from(["p", "q", "r"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["0", "1", "250m"]),
    st.sampled_from([0, 5]),
    st.booleans(),
    st.integers(-1, 2),
)


@given(st.lists(_STEP, max_size=30))
def test_use_after_any_events_equals_a_new_count(steps):
    pods = ClusterPods()
    view = ClusterView(listed_nodes(), pods, Devices())
    use = {"a": {}, "b": {}}
    version = 1
    for kind, name, bound, nominated, cpu, priority, ours, newer in steps:
        version += newer
        status = {"nominatedNodeName": nominated} if nominated else {}
        labels = OURS if ours else {}
        found = pod(name, version, bound, cpu, labels, status, priority=priority)
        if kind == "RELIST":
            pods.replace([pods.compact(found)], str(version))
        else:
            pods.apply_event(kind, found)
        before, use = use, {node: view.use_by_priority(node) for node in ("a", "b")}
        assert use == {node: count(pods, node) for node in ("a", "b")}
        assert {each for each in use if use[each] != before[each]} <= view.take_changed_nodes()
        waiting = {each.name for each in pods if each.is_unbound_foreign}
        assert {each.name for each in view.unbound_foreign({"default-scheduler"})} == waiting
    pods.clear()
    assert not view._use, "nothing is kept of nodes without pods"


def count(pods: Iterable[ClusterPod], node: str) -> dict[int, dict[str, int]]:
    """What pods use of a node, counted from the beginning."""
    found: dict[int, dict[str, int]] = {}
    for each in pods:
        if each.node == node or (not each.node and not each.gang and each.nominated_node == node):
            used = found.setdefault(each.profile.priority, {})
            for resource, amount in each.profile.requests.items():
                if amount:
                    used[resource] = used.get(resource, 0) + amount
    return found
