"""The operator's caches, filled from the state of a cluster."""

from __future__ import annotations

import asyncio

from grove.cluster_state.cache_loading import list_nodes, load_caches
from grove.cluster_state.kinds import TOPOLOGIES
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.kube.client.resource import DEVICE_CLASSES, NODES, PODS, PRIORITY_CLASSES
from grove.local.cluster.cluster_shape import RACK
from grove.operator.caches.registry import Caches
from grove.operator.observers.cluster.cluster_view import ClusterView
from tests.cluster_state.states import SETS, shaped, unreadable, with_objects
from tests.plan.builders import a_set

GPU = "nvidia.com/gpu"


def pod(name: str, node: str, phase: str = "Running", **labels: str):
    requests = {"resources": {"requests": {GPU: "2"}}}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main", **requests}]},
        "status": {"phase": phase},
    }


def loaded(state) -> Caches:
    async def load() -> Caches:
        caches = new_caches(operator_setup())
        load_caches(state, caches)
        return caches

    return asyncio.run(load())


def view(caches: Caches) -> ClusterView:
    return ClusterView(caches.nodes, caches.cluster_pods, caches.devices)


def test_running_pods_use_nodes_and_ended_ones_do_not() -> None:
    node = "z0-b0-r0-h0"
    state = with_objects(shaped(), PODS, pod("a", node), pod("b", node, "Succeeded"))
    caches = loaded(state)
    assert view(caches).use_by_priority(node)[0][GPU] == 2
    assert len(caches.pods) == 0  # those of others are in no cache of replicas


def test_own_pods_are_in_the_cache_of_replicas() -> None:
    managed = {"app.kubernetes.io/managed-by": "grove-operator"}
    caches = loaded(with_objects(shaped(), PODS, pod("a", "n", **managed)))
    assert [each.metadata.name for each in caches.pods] == ["a"]


def test_all_needed_caches_are_synced() -> None:
    caches = loaded(with_objects(shaped(), SETS, a_set("a:1")))
    assert caches.unsynced == []
    assert len(caches.sets) == 1
    assert view(caches).synced


def skipped(state) -> list[str]:
    async def load() -> list[str]:
        return [str(each) for each in load_caches(state, new_caches(operator_setup())).unread]

    return asyncio.run(load())


def test_objects_that_do_not_fit_their_type_are_named() -> None:
    assert skipped(shaped()) == []
    wrong = pod("a", "n") | {"spec": {"nodeName": 5}}
    state = with_objects(shaped(), PODS, wrong, pod("b", "n"))
    state = with_objects(state, NODES, {"metadata": {"name": "n"}, "status": {"allocatable": []}})
    state = with_objects(state, SETS, a_set("a:1") | {"spec": {"replicas": "many"}})
    assert skipped(state) == [
        "nodes: cannot be decoded: n",
        f"{SETS.label}: cannot be decoded: ns/wl",
        "pods: cannot be decoded: ns/a",
    ]


def test_object_is_skipped_only_by_caches_that_select_it() -> None:
    """What is wrong is read of our pods only."""
    wrong = {"spec": {"nodeName": "n", "hostname": 5}}
    managed = {"app.kubernetes.io/managed-by": "grove-operator"}
    state = with_objects(shaped(), PODS, pod("other", "n") | wrong, pod("own", "n", **managed) | wrong)
    assert skipped(state) == ["pods: cannot be decoded: ns/own"]


def test_names_of_many_skipped_objects_are_counted() -> None:
    wrong = [pod(f"p{number}", "n") | {"spec": 5} for number in range(20)]
    (line,) = skipped(with_objects(shaped(), PODS, *wrong))
    assert line.startswith("pods: cannot be decoded: ns/p0, ns/p1")
    assert line.endswith(" more")


def test_labels_are_listed_again_once_required() -> None:
    state = shaped()
    caches = loaded(state)
    cluster = view(caches)
    assert not cluster.require([RACK])
    assert caches.nodes.needs_list
    list_nodes(state, caches)
    assert cluster.require([RACK])
    assert cluster.node("z0-b1-r1-h0").labels[RACK] == "z0-b1-r1"


def test_labels_of_topologies_are_listed_at_once() -> None:
    topology = {"metadata": {"name": "racks"}, "spec": {"levels": [{"domain": "rack", "key": RACK}]}}
    caches = loaded(with_objects(shaped(), TOPOLOGIES, topology))
    assert view(caches).require([RACK])
    assert not caches.nodes.needs_list


def test_unreadable_kinds_have_their_reason() -> None:
    why = "no right to list it (403 Forbidden)"
    caches = loaded(unreadable(unreadable(shaped(), PRIORITY_CLASSES, why), DEVICE_CLASSES, why))
    assert caches.priority_classes.list_error == why
    assert caches.devices.is_forbidden
    assert view(caches).device_problem == f"devices: {why}"
