"""Devices of ResourceSlices as resources."""

from __future__ import annotations

from typing import Any

from grove.topology.placement.devices import claimed, devices_by_node, drivers, resource_of

GPU = resource_of("gpu.nvidia.com")
DRIVERS = {"gpu.nvidia.com": "gpu.nvidia.com"}


def device_class(name: str, *expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def a_slice(node: str, count: int, generation: int = 1, **more: Any) -> dict[str, Any]:
    listed = [{"name": f"d{i}"} for i in range(count)]
    pool = {"name": node, "generation": generation}
    return {"spec": {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": listed, **more}}


def claim(**exactly: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def test_classes_that_select_by_driver_alone_are_counted() -> None:
    listed = [
        device_class("a", "device.driver == 'gpu.nvidia.com'"),
        device_class("b", "device.driver == 'x' && device.attributes['x'].big"),
        device_class("c", "device.driver == 'x'", "device.attributes['x'].big"),
        device_class("d"),
    ]
    assert drivers(listed) == {"a": "gpu.nvidia.com"}


def test_slices_of_a_pool_add_up_per_node() -> None:
    found = devices_by_node([a_slice("n1", 4), a_slice("n1", 3), a_slice("n2", 1)], DRIVERS)
    assert found == {"n1": {GPU: 7}, "n2": {GPU: 1}}


def test_outdated_generation_of_a_pool_is_left_out() -> None:
    assert devices_by_node([a_slice("n1", 4), a_slice("n1", 2, generation=2)], DRIVERS) == {"n1": {GPU: 2}}


def test_tainted_device_is_left_out() -> None:
    devices = [{"name": "a"}, {"name": "b", "taints": [{"key": "x", "effect": "NoExecute"}]}]
    assert devices_by_node([a_slice("n1", 0, devices=devices)], DRIVERS) == {"n1": {GPU: 1}}


def test_slice_without_node_is_not_counted() -> None:
    assert devices_by_node([a_slice("", 4)], DRIVERS) == {}


def test_claims_ask_for_exact_counts() -> None:
    one, two = claim(deviceClassName="gpu.nvidia.com"), claim(deviceClassName="gpu.nvidia.com", count=2)
    assert claimed([one, two], DRIVERS) == {GPU: 3}


def test_claim_that_is_not_modelled_asks_for_nothing() -> None:
    everything = claim(deviceClassName="gpu.nvidia.com", allocationMode="All")
    admin = claim(deviceClassName="gpu.nvidia.com", adminAccess=True)
    other = claim(deviceClassName="unknown")
    alternatives = {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "a"}]}]}}
    assert claimed([everything, admin, other, alternatives, {}], DRIVERS) == {}


def test_classes_of_one_driver_share_its_devices() -> None:
    both = {"a": "x", "b": "x"}
    assert claimed([claim(deviceClassName="a", count=2)], both) == {resource_of("a"): 2, resource_of("b"): 2}
