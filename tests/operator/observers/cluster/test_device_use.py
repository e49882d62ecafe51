"""Devices of nodes and claims on them, as parts of what placement knows about the cluster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.types.cluster.device_objects import AllocatedClaim, DeviceClass, DeviceSlice
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.device_use import NOT_PREEMPTED
from grove.topology.placement.needs.devices import resource_of
from tests.operator.cluster_builders import listed, listed_nodes, node, pod

GPUS = resource_of("gpus")


def meta(name: str, version: int = 1) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "n",
        "uid": name,
        "resourceVersion": str(version),
        "labels": {"a": "b"},
    }


def slice_(node: str, devices: int, version: int = 1, tainted: int = 0) -> DeviceSlice:
    taint = [{"key": "k", "effect": "NoExecute"}]
    listed = [{"name": str(i), "taints": taint if i < tainted else []} for i in range(devices)]
    pool = {"name": f"pool-{node}", "generation": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": listed}
    return msgspec.convert({"metadata": meta(node, version), "spec": spec}, DeviceSlice)


def class_(
    expression: str = 'device.driver == "gpu.example.com"', version: int = 1, extended: str = ""
) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": extended}
    return msgspec.convert({"metadata": meta("gpus", version), "spec": spec}, DeviceClass)


def claim(*pools: str, version: int = 1, users: tuple[str, ...] = ("p",), **more: Any) -> AllocatedClaim:
    results = [{"driver": "gpu.example.com", "pool": pool, "device": "0", **more} for pool in pools]
    status = {
        "allocation": {"devices": {"results": results}} if results else None,
        "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
    }
    return msgspec.convert({"metadata": meta("c", version), "status": status}, AllocatedClaim)


def listed_devices(*claims: AllocatedClaim) -> Devices:
    devices = Devices()
    devices.require()
    devices.slices.replace([slice_("a", 8, tainted=1), slice_("b", 4)], "1")
    devices.classes.replace([class_()], "1")
    devices.claims.replace(claims, "1")
    return devices


def a_view(devices: Devices, pods: ClusterPods | None = None) -> ClusterView:
    found = pods if pods is not None else listed(pod("p", priority=5), pod("q", priority=9))
    return ClusterView(listed_nodes(node(cpu="1"), node("b", cpu="1")), found, devices)


def test_devices_of_nodes_count_as_a_resource():
    devices, calls = listed_devices(), []
    view = a_view(devices)
    view.subscribe(lambda: calls.append(1))
    assert view.node("a").allocatable == {"cpu": 1000, GPUS: 7}
    counted = view._device_use._allocatable
    view.take_changed_nodes()
    assert view._device_use._allocatable is counted, "without a change, nothing is counted again"
    devices.slices.apply_event("MODIFIED", slice_("a", 2, version=2))
    assert (calls, view.take_changed_nodes()) == ([1], {"a"})
    assert view.node("a").allocatable == {"cpu": 1000, GPUS: 2}
    devices.classes.apply_event("MODIFIED", class_("true", version=3))
    assert view.node("b").allocatable == {"cpu": 1000}
    assert view.take_changed_nodes() == {"a", "b"}


@pytest.mark.parametrize(
    ("read", "without_devices"),
    [
        (lambda view: view.node("a").allocatable, {"cpu": 1000}),
        (lambda view: view.use_by_priority("a"), {}),
        (lambda view: view.take_changed_nodes(), {"a"}),
    ],
    ids=["node", "use", "changed nodes"],
)
def test_device_change_is_seen_whatever_is_read_first(read, without_devices):
    devices = listed_devices(claim("pool-a"))
    view = a_view(devices)
    view.take_changed_nodes()
    assert read(view) != without_devices
    devices.slices.apply_event("DELETED", slice_("a", 8, version=2))
    assert read(view) == without_devices


@pytest.mark.parametrize(
    ("found", "used"),
    [
        (claim("pool-a", "pool-a", "pool-b"), {"a": {5: {GPUS: 2}}, "b": {5: {GPUS: 1}}}),
        (claim("pool-a", users=("p", "q")), {"a": {9: {GPUS: 1}}}),
        (claim("pool-a", users=("p", "unknown")), {"a": {NOT_PREEMPTED: {GPUS: 1}}}),
        (claim("pool-a", users=()), {"a": {NOT_PREEMPTED: {GPUS: 1}}}),
        (claim("pool-a", adminAccess=True), {}),
        (claim("other"), {}),
        (claim(), {}),
    ],
    ids=["two nodes", "two pods", "unknown pod", "no pod", "admin", "other pool", "not allocated"],
)
def test_allocated_devices_are_used_by_the_pods_of_a_claim(found, used):
    devices = listed_devices(found)
    view = a_view(devices)
    seen = {name: view.use_by_priority(name) for name in ("a", "b")}
    assert {name: each for name, each in seen.items() if each} == used
    devices.claims.apply_event("DELETED", found)
    assert (view.use_by_priority("a"), view.use_by_priority("b")) == ({}, {})


def test_use_follows_the_events_of_a_claim():
    devices, calls = listed_devices(), []
    view = a_view(devices)
    view.take_changed_nodes()
    view.subscribe(lambda: calls.append(1))
    devices.claims.apply_event("ADDED", claim(version=2))
    assert (view.take_changed_nodes(), calls) == (set(), [])
    devices.claims.apply_event("MODIFIED", claim("pool-b", version=3))
    assert (view.use_by_priority("b"), view.take_changed_nodes()) == ({5: {GPUS: 1}}, {"b"})
    devices.claims.apply_event("MODIFIED", claim("pool-a", version=4))
    assert view.take_changed_nodes() == {"a", "b"}
    assert (view.use_by_priority("a"), view.use_by_priority("b")) == ({5: {GPUS: 1}}, {})
    assert len(calls) == 2


def test_claim_seen_before_its_pod_gets_the_priority_of_the_pod():
    pods = listed()
    view = a_view(listed_devices(claim("pool-a")), pods)
    assert view.use_by_priority("a") == {NOT_PREEMPTED: {GPUS: 1}}
    view.take_changed_nodes()
    pods.apply_event("ADDED", pod("p", version=2, priority=5))
    assert view.use_by_priority("a") == {5: {GPUS: 1}}
    assert view.take_changed_nodes() == {"a"}
    assert not view._device_use._unknown_pods


def test_pods_of_deleted_claims_are_forgotten():
    devices = listed_devices(claim("pool-a", users=("unknown",)))
    view = a_view(devices)
    view.take_changed_nodes()
    assert view._device_use._unknown_pods == {("n", "unknown")}
    devices.claims.apply_event("DELETED", claim(version=2))
    assert not view._device_use._unknown_pods


def test_view_is_synced_without_devices_until_they_are_required():
    devices, calls = Devices(), []
    view = a_view(devices)
    view.subscribe(lambda: calls.append(view.synced))
    assert view.synced
    view.require_devices()
    assert not view.synced
    devices.slices.replace([slice_("a", 8)], "1")
    devices.classes.replace([class_()], "1")
    assert (view.synced, calls) == (False, [])
    devices.claims.clear()  # is not served
    assert (view.synced, calls) == (True, [True])
    assert view.node("a").allocatable[GPUS] == 8


def test_only_counted_parts_of_device_objects_are_kept():
    devices = listed_devices(claim("pool-a"))
    for cache in devices.all:
        assert [found.metadata.labels for found in cache] == [{}] * len(cache)


def test_device_plugin_goes_before_devices_of_the_same_resource():
    devices = listed_devices(claim("pool-a"))
    devices.classes.apply_event("MODIFIED", class_(version=2, extended="example.com/gpu"))
    nodes = listed_nodes(node(cpu="1"), node("b", cpu="1", **{"example.com/gpu": "3"}))
    view = ClusterView(nodes, listed(pod("p", priority=5)), devices)
    assert view.node("a").allocatable == {"cpu": 1000, GPUS: 7, "example.com/gpu": 7}
    assert view.node("b").allocatable == {"cpu": 1000, GPUS: 4, "example.com/gpu": 3}
    assert view.use_by_priority("a") == {5: {GPUS: 1, "example.com/gpu": 1}}


def test_device_for_a_request_is_counted_with_its_pod():
    found = claim("pool-a")
    found.metadata.annotations["resource.kubernetes.io/extended-resource-claim"] = "true"
    devices = listed_devices(found)
    assert a_view(devices).use_by_priority("a") == {}, "the pod requests the resource named by the class"
    devices.classes.apply_event("MODIFIED", class_(version=2, extended="example.com/gpu"))
    assert a_view(devices).use_by_priority("a") == {5: {GPUS: 1}}
