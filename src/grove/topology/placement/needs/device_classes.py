"""Which devices belong to a DeviceClass, as far as its CEL expressions are understood: conjunctions that
compare the driver or an attribute of a device with a constant. Drivers write their classes this way:

    device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from grove.api.types.cluster.device_objects import CountedDevice, DeviceClass

Value = str | int | bool
DRIVER = "driver"
"""The name of the condition on the driver; those on attributes are named `<domain>/<attribute>`."""
Condition = tuple[str, Value]
Conditions = frozenset[Condition]

_ATTRIBUTE = r"""device\.attributes\[(?:"(?P<domain>[^"\\]+)"|'(?P<domain_>[^'\\]+)')\]\.(?P<name>\w+)"""
_CONSTANT = r"""(?:"(?P<text>[^"\\]*)"|'(?P<text_>[^'\\]*)'|(?P<number>-?[0-9]{1,18}|true|false))"""
_TERM = re.compile(rf"\s*(?:device\.driver|{_ATTRIBUTE})\s*==\s*{_CONSTANT}\s*", re.ASCII)
_AND = "&&"


def conditions_of(device_class: DeviceClass) -> Conditions | None:
    """What the devices of a class meet; None if that is not understood."""
    parsed = [parse(selector.cel.expression) for selector in device_class.spec.selectors]
    understood = [each for each in parsed if each is not None]
    return frozenset[Condition]().union(*understood) if len(understood) == len(parsed) else None


def attribute_names(conditions: Iterable[Conditions | None]) -> frozenset[str]:
    """The attributes that conditions compare, without their domains."""
    compared = (name for each in conditions for name, _ in each or ())
    return frozenset(name.rpartition("/")[2] for name in compared if name != DRIVER)


def meets(driver: str, device: CountedDevice, conditions: Conditions) -> bool:
    """Whether a device of a driver meets all conditions."""
    return all(_has(driver, device, name, value) for name, value in conditions)


def parse(expression: str) -> Conditions | None:
    """The conditions of a CEL expression; None if it is not a conjunction of known comparisons."""
    found: set[Condition] = set()
    position = 0
    while (term := _TERM.match(expression, position)) is not None:
        found.add((_name(term), _constant(term)))
        if term.end() == len(expression):
            return frozenset(found)
        if not expression.startswith(_AND, term.end()):
            return None
        position = term.end() + len(_AND)
    return None


def _has(driver: str, device: CountedDevice, name: str, value: Value) -> bool:
    if name == DRIVER:
        return driver == value
    domain, _, short = name.rpartition("/")
    attribute = device.attributes.get(name)
    if attribute is None and domain == driver:
        attribute = device.attributes.get(short)
    found = attribute.value if attribute is not None else None
    return type(found) is type(value) and found == value


def _name(term: re.Match[str]) -> str:
    domain = term["domain"] or term["domain_"]
    return f"{domain}/{term['name']}" if domain else DRIVER


def _constant(term: re.Match[str]) -> Value:
    if term["number"]:
        value: Value = msgspec.json.decode(term["number"])
        return value
    return term["text"] if term["text"] is not None else term["text_"]
