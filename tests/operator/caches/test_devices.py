"""What is kept of devices."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.types.cluster.device_objects import DeviceClass, DeviceSlice
from grove.operator.caches.devices import Devices


def a_class(expression: str) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    metadata = {"name": "gpu", "resourceVersion": "1"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, DeviceClass)


def a_slice(**attributes: Any) -> DeviceSlice:
    spec = {"driver": "x", "nodeName": "n", "devices": [{"name": "d", "attributes": attributes}]}
    return msgspec.convert({"metadata": {"name": "s", "resourceVersion": "1"}, "spec": spec}, DeviceSlice)


def test_only_attributes_that_a_class_compares_are_kept() -> None:
    devices = Devices()
    devices.classes.replace([a_class("device.attributes['x'].type == 'gpu'")], "1")
    attributes = {"type": {"string": "gpu"}, "x/type": {"string": "gpu"}, "uuid": {"string": "1234"}}
    devices.slices.replace([a_slice(**attributes)], "1")
    (found,) = devices.slices
    assert set(found.spec.devices[0].attributes) == {"type", "x/type"}
