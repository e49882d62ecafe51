"""The cache of all pods: which events change it, what is kept of a pod, and how much memory that takes."""

from __future__ import annotations

import sys

import pytest
from structlog.testing import capture_logs

from grove.api.meta import ObjectMeta
from grove.kube.client.undecodable import Undecodable
from grove.operator.caches.cluster_pods import ClusterPods
from tests.operator.cluster_builders import OURS, listed, pod

GATES = [{"name": "g"}]


def nominated(node: str) -> dict[str, str]:
    return {"nominatedNodeName": node}


def unreadable(name: str, reason: str = "why") -> Undecodable:
    return Undecodable(reason, ObjectMeta(name, "n", "u", "9"))


def recorded(pods: ClusterPods) -> list[tuple[str, str]]:
    """The changes from now on, as versions before and after."""
    changes: list[tuple[str, str]] = []
    pods.subscribe(
        lambda old, new: changes.append(tuple(str(each.version) if each else "-" for each in (old, new)))
    )
    return changes


def test_identity_is_kept_of_unbound_pods_and_ours():
    pods = listed(pod("bound", node="a"), pod("unbound"), pod("ours", node="a", labels=OURS))
    kept = {each.name: (each.node, each.gang, each.uid, each.created) for each in pods}
    assert kept == {
        "bound": ("a", "", "", 0.0),
        "unbound": ("", "", "uid-unbound", 1767225610.0),
        "ours": ("a", "gang", "uid-ours", 1767225610.0),
    }


@pytest.mark.parametrize(
    ("found", "used", "unbound_foreign"),
    [
        (pod(), "", True),
        (pod(node="a"), "a", False),
        (pod(node="a", status=nominated("b")), "a", False),
        (pod(status=nominated("b")), "b", True),
        (pod(status=nominated("b"), labels=OURS), "", False),
        (pod(node="a", labels=OURS), "a", False),
        (pod(labels={"grove.io/podgang": "gang"}), "", True),
        (pod(schedulingGates=GATES), "", False),
        (pod(schedulingGates=GATES, status=nominated("b")), "b", False),
        (pod(deletionTimestamp="2026-01-01T00:00:10Z"), "", False),
    ],
    ids=[
        "unbound",
        "bound",
        "bound elsewhere",
        "nominated",
        "ours nominated",
        "ours bound",
        "only labelled like ours",
        "gated",
        "gated and nominated",
        "terminating",
    ],
)
def test_pod_uses_its_node_or_waits(found, used, unbound_foreign):
    kept = ClusterPods().compact(found)
    assert (kept.used_node, kept.is_unbound_foreign) == (used, unbound_foreign)


def test_only_newer_events_with_a_change_notify():
    pods = listed(pod(version=3))
    changes = recorded(pods)
    for kind, event, seen in [
        ("MODIFIED", pod(version=4), []),
        ("MODIFIED", pod(version=6, node="a"), [("4", "6")]),
        ("MODIFIED", pod(version=5), []),
        ("MODIFIED", pod(version=6), []),
        ("DELETED", pod(version=5), []),
        ("ADDED", pod("q", version=2), [("-", "2")]),
        ("DELETED", pod(version=7), [("6", "-")]),
        ("DELETED", pod("q", version=8), [("2", "-")]),
    ]:
        changes.clear()
        pods.apply_event(kind, event)
        assert changes == seen, (kind, event.metadata)
    assert (len(pods), list(pods), pods.get("n", "p")) == (0, [], None)


@pytest.mark.parametrize(
    "changed",
    [
        pod(version=2, status=nominated("b")),
        pod(version=2, cpu="2"),
        pod(version=2, schedulingGates=GATES),
        pod(version=2, labels=OURS),
        pod(version=2, deletionTimestamp="2026-01-01T00:00:10Z"),
    ],
    ids=["nominated", "resized", "gated", "labels", "deleted"],
)
def test_change_of_kept_part_notifies(changed):
    pods = listed(pod())
    changes = recorded(pods)
    pods.apply_event("MODIFIED", changed)
    assert changes == [("1", "2")]


def test_new_list_replaces_and_removes():
    pods = listed(pod("a"), pod("b"), pod("c"))
    synced: list[bool] = []
    pods.on_synced(lambda: synced.append(True))
    changes = recorded(pods)
    pods.replace(map(pods.compact, [pod("a", 2), pod("b", 3, node="x")]), "9", [unreadable("d")])
    assert sorted(changes) == [("1", "-"), ("1", "3")]
    assert {each.name: each.version for each in pods} == {"a": 2, "b": 3}
    assert not synced, "only the first list makes the cache synced"


def test_first_list_makes_the_cache_synced():
    pods, seen = ClusterPods(), []
    pods.on_synced(lambda: seen.append(len(pods)))
    assert not pods.synced.is_set()
    pods.replace(map(pods.compact, [pod("a")]), "1")
    assert (pods.synced.is_set(), seen) == (True, [1])


def test_undecodable_pod_keeps_its_last_state_until_deleted():
    pods = listed(pod(node="a"))
    with capture_logs() as logs:
        pods.apply_undecodable("MODIFIED", unreadable("p"))
        pods.apply_undecodable("MODIFIED", unreadable("p"))
        pods.replace((), "9", [unreadable("p")])
        pods.apply_undecodable("MODIFIED", unreadable("p", "other"))
    assert [log["reason"] for log in logs] == ["why", "other"], "a reason is logged once"
    assert [each.node for each in pods] == ["a"]
    pods.apply_undecodable("DELETED", unreadable("p"))
    pods.apply_undecodable("DELETED", unreadable("unknown"))
    assert len(pods) == 0


def test_failed_handler_does_not_stop_the_others():
    pods = ClusterPods()
    pods.subscribe(lambda old, new: 1 / 0)
    changes = recorded(pods)
    with capture_logs() as logs:
        pods.apply_event("ADDED", pod())
    assert changes == [("-", "1")]
    assert [log["event"] for log in logs] == ["handler failed"]


def test_cleared_cache_is_empty():
    pods = listed(pod("a"), pod("b"))
    changes = recorded(pods)
    pods.clear()
    assert (len(pods), changes) == (0, [("1", "-"), ("1", "-")])


def test_pods_that_have_ended_are_not_watched():
    assert ClusterPods.fields == "status.phase!=Succeeded,status.phase!=Failed"


def test_bound_pod_of_others_is_small():
    pods = listed(*(pod(f"p{i}", 10**8 + i, node="a" * 2) for i in range(2)))
    one, other = pods
    shared = {id(getattr(one, field)) for field in one.__struct_fields__}
    own = [value for field in other.__struct_fields__ if id(value := getattr(other, field)) not in shared]
    assert own == ["p1", 10**8 + 1], "all else is shared"
    assert sys.getsizeof(other) + sum(map(sys.getsizeof, own)) < 200
