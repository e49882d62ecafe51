"""Which devices belong to a DeviceClass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.types.cluster.device_objects import CountedDevice, DeviceClass
from grove.topology.placement.needs.device_classes import attribute_names, conditions_of, meets, parse

GPU = "gpu.nvidia.com"
TYPE = f'device.attributes["{GPU}"].type'


def device(**attributes: Any) -> CountedDevice:
    return msgspec.convert({"name": "d", "attributes": attributes}, CountedDevice)


def device_class(*expressions: str) -> DeviceClass:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return msgspec.convert({"metadata": {"name": "c"}, "spec": {"selectors": selectors}}, DeviceClass)


@pytest.mark.parametrize(
    ("expression", "conditions"),
    [
        ("device.driver == 'x'", {("driver", "x")}),
        (f'device.driver == "{GPU}" && {TYPE} == "gpu"', {("driver", GPU), (f"{GPU}/type", "gpu")}),
        ("device.attributes['d'].id == 0 && device.attributes['d'].on==true", {("d/id", 0), ("d/on", True)}),
        ("device.driver == 'a && b'", {("driver", "a && b")}),
        ("device.driver == 'x' || device.driver == 'y'", None),
        ("!(device.driver == 'x')", None),
        ("device.driver == 'x' &&", None),
        ("device.capacity['x'].memory.compareTo(quantity('1Gi')) >= 0", None),
        ("device.driver == 'x' + 'y'", None),
        ("", None),
    ],
)
def test_conjunctions_of_comparisons_are_understood(expression: str, conditions: Any) -> None:
    assert parse(expression) == conditions


def test_class_has_the_conditions_of_all_its_selectors() -> None:
    found = conditions_of(device_class("device.driver == 'x'", "device.attributes['x'].big == true"))
    assert found == {("driver", "x"), ("x/big", True)}
    assert attribute_names([found, None]) == {"big"}
    assert conditions_of(device_class("device.driver == 'x'", "true")) is None
    assert conditions_of(device_class()) == frozenset(), "every device belongs to it"


@pytest.mark.parametrize(
    ("attributes", "belongs"),
    [
        ({"type": {"string": "gpu"}}, True),
        ({f"{GPU}/type": {"string": "gpu"}}, True),
        ({"other.com/type": {"string": "gpu"}}, False),
        ({"type": {"string": "mig"}}, False),
        ({"type": {"version": "gpu"}}, False),
        ({}, False),
    ],
)
def test_attribute_is_found_in_the_domain_of_the_driver(attributes: Any, belongs: bool) -> None:
    conditions = parse(f'device.driver == "{GPU}" && {TYPE} == "gpu"')
    assert conditions is not None
    assert meets(GPU, device(**attributes), conditions) is belongs
    assert not meets("other.com", device(**attributes), conditions)


def test_number_is_not_equal_to_a_flag() -> None:
    conditions = parse("device.attributes['x'].id == 1")
    assert conditions is not None
    assert meets("x", device(id={"int": 1}), conditions)
    assert not meets("x", device(id={"bool": True}), conditions)
