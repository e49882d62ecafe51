"""Devices of ResourceSlices as resources."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.types.cluster.device_objects import DeviceClass, DeviceSlice
from grove.topology.placement.needs.devices import (
    DeviceCatalog,
    catalog,
    claimed,
    described,
    devices_by_node,
    requested_classes,
    resource_of,
)

GPU = resource_of("gpu")
DRIVER = "gpu.example.com"
OF_DRIVER = f"device.driver == '{DRIVER}'"


def device_class(name: str = "gpu", expression: str = OF_DRIVER, extended: str = "") -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": extended}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def a_slice(node: str, count: int, generation: int = 1, **more: Any) -> DeviceSlice:
    listed = [{"name": f"d{i}"} for i in range(count)]
    pool = {"name": node, "generation": generation}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed, **more}
    return msgspec.convert({"metadata": {"name": node}, "spec": spec}, DeviceSlice)


def typed(*types: str) -> list[dict[str, Any]]:
    return [{"name": f"d{i}", "attributes": {"type": {"string": each}}} for i, each in enumerate(types)]


def by_node(*slices: DeviceSlice, classes: tuple[DeviceClass, ...] = (device_class(),)) -> Any:
    return devices_by_node(slices, catalog(classes, slices))


def claim(**exactly: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def test_slices_of_a_pool_add_up_per_node() -> None:
    found = by_node(a_slice("n1", 4), a_slice("n1", 3), a_slice("n2", 1))
    assert found == {"n1": {GPU: 7}, "n2": {GPU: 1}}


def test_outdated_generation_of_a_pool_is_left_out() -> None:
    assert by_node(a_slice("n1", 4), a_slice("n1", 2, generation=2)) == {"n1": {GPU: 2}}


def test_tainted_device_is_left_out() -> None:
    devices = [{"name": "a"}, {"name": "b", "taints": [{"key": "x", "effect": "NoExecute"}]}]
    assert by_node(a_slice("n1", 0, devices=devices)) == {"n1": {GPU: 1}}


def test_devices_are_counted_by_their_attributes() -> None:
    kind = f"device.attributes['{DRIVER}'].type"
    classes = (device_class("gpu", f"{kind} == 'gpu'"), device_class("mig", f"{kind} == 'mig'"))
    found = by_node(a_slice("n1", 0, devices=typed("gpu", "mig", "mig")), classes=classes)
    assert found == {"n1": {GPU: 1, resource_of("mig"): 2}}


def test_class_that_cannot_be_counted_says_why() -> None:
    classes = (device_class(), device_class("cel", "true"))
    shared = a_slice("n1", 0, devices=[{"name": "a", "allowMultipleAllocations": True}])
    for slices, why in (
        ([a_slice("", 4)], "its devices do not belong to one node"),
        ([shared, a_slice("n2", 1)], "claims can share its devices"),
    ):
        found = catalog(classes, slices)
        assert found.uncounted == {"gpu": why, "cel": "its selectors are not understood"}
        assert not any(devices_by_node(slices, found).values())
        asked = claimed([claim(deviceClassName="gpu"), claim(deviceClassName="cel")], found)
        assert (asked.amounts, asked.classes) == ({}, ())
        assert asked.uncounted == (
            f"devices of class gpu: {why}",
            "devices of class cel: its selectors are not understood",
        )


def test_claims_ask_for_exact_counts() -> None:
    known = catalog([device_class()], [a_slice("n1", 8)])
    two = claim(deviceClassName="gpu", count=2, selectors=[{"cel": {"expression": "true"}}])
    found = claimed([claim(deviceClassName="gpu"), two], known)
    assert (found.amounts, found.classes, found.uncounted) == ({GPU: 3}, ("gpu",), ())


def test_all_devices_are_those_of_the_smallest_node() -> None:
    known = catalog([device_class()], [a_slice("n1", 8), a_slice("n2", 4), a_slice("n3", 0)])
    assert claimed([claim(deviceClassName="gpu", allocationMode="All")], known).amounts == {GPU: 4}


def test_unknown_class_is_asked_for() -> None:
    assert claimed([claim(deviceClassName="new", count=2)], DeviceCatalog()).amounts == {
        resource_of("new"): 2
    }


def test_request_that_is_not_modelled_asks_for_nothing() -> None:
    known = catalog([device_class()], [a_slice("n1", 8)])
    admin = claim(deviceClassName="gpu", adminAccess=True)
    tolerant = claim(deviceClassName="gpu", tolerations=[{"operator": "Exists"}])
    alternatives = {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "a"}]}]}}
    found = claimed([admin, tolerant, alternatives, {}], known)
    assert found.amounts == {}
    assert found.uncounted == (
        "devices of class gpu: tainted ones are tolerated",
        "request r: it has alternatives",
    )


def test_device_counts_for_all_classes_that_surely_have_it() -> None:
    large = device_class("large", f"{OF_DRIVER} && device.attributes['{DRIVER}'].type == 'large'")
    known = catalog([device_class(), device_class("same"), large], [])
    assert claimed([claim(deviceClassName="gpu")], known).amounts == {GPU: 1, resource_of("same"): 1}
    everywhere = {GPU: 1, resource_of("same"): 1, resource_of("large"): 1}
    assert claimed([claim(deviceClassName="large")], known).amounts == everywhere


def test_device_resource_is_described_by_its_class() -> None:
    assert described(GPU) == "devices of class gpu"
    assert described("nvidia.com/gpu") == "nvidia.com/gpu"


def test_extended_resource_of_a_class_is_counted_too() -> None:
    gpu, slices = device_class(extended="example.com/gpu"), [a_slice("n1", 4)]
    assert by_node(*slices, classes=(gpu,)) == {"n1": {GPU: 4, "example.com/gpu": 4}}
    known = catalog([gpu], slices)
    assert requested_classes({"example.com/gpu", resource_of("a"), "other"}, known.extended) == ["a", "gpu"]
