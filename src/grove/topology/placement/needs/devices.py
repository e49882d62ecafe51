"""Devices that exist only in ResourceSlices, counted like a resource: by device class, how many a node has
and how many a claim asks for.

What cannot be counted this way is assumed to fit, and named: classes whose selectors are not understood,
devices that several nodes can use or several claims can share, and requests with alternatives. Selectors of a
request count as met: it asks for devices of the whole class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from grove.api.types.cluster.device_objects import CountedDevice, DeviceClass, DeviceSlice, DeviceSliceSpec
from grove.topology.placement.needs.device_classes import Conditions, conditions_of, meets

Body = Mapping[str, Any]

_PREFIX = "deviceclass.resource.kubernetes.io/"
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def resource_of(device_class: str) -> str:
    """The name under which devices of a class are counted: the one by which pods may request them."""
    return _PREFIX + device_class


def is_device(resource: str) -> bool:
    """Whether devices of a class are counted under this name."""
    return resource.startswith(_PREFIX)


def described(resource: str) -> str:
    """A resource as users know it."""
    return f"devices of class {resource.removeprefix(_PREFIX)}" if is_device(resource) else resource


class DeviceCatalog(Struct, frozen=True):
    """What the cluster says about its device classes."""

    conditions: Mapping[str, Conditions] = {}
    """By class that can be counted, what its devices meet."""
    uncounted: Mapping[str, str] = {}
    """The classes that cannot be counted, with the reason."""
    smallest: Mapping[str, int] = {}
    """By class, how many of its devices the node has that has the fewest, but some."""
    extended: Mapping[str, str] = {}
    """By extended resource, the class whose devices pods get for it on nodes without a device plugin."""

    def classes_of(self, driver: str, device: CountedDevice) -> list[str]:
        """The counted classes that a device belongs to."""
        return [name for name, each in self.conditions.items() if meets(driver, device, each)]

    def consumed_with(self, device_class: str) -> list[str]:
        """The classes that every device of this class belongs to. A class that does not exist is counted,
        too: no node has such devices."""
        own = self.conditions.get(device_class)
        if own is None:
            return [device_class]
        return [name for name, each in self.conditions.items() if each <= own]


class Claimed(Struct, frozen=True):
    """What claims ask for."""

    amounts: Mapping[str, int] = {}
    """By resource."""
    classes: tuple[str, ...] = ()
    """The device classes that are counted."""
    uncounted: tuple[str, ...] = ()
    """What is not counted, for users."""


def catalog(classes: Iterable[DeviceClass], slices: Iterable[DeviceSlice]) -> DeviceCatalog:
    """The device classes of a cluster."""
    listed = list(classes)
    read = {each.metadata.name: conditions_of(each) for each in listed}
    counted = {name: each for name, each in read.items() if each is not None}
    uncounted = {name: "its selectors are not understood" for name, each in read.items() if each is None}
    current = list(newest(slices))
    for spec in current:
        for device in spec.devices:
            if why := _not_counted(spec, device):
                known = DeviceCatalog(counted)
                uncounted |= dict.fromkeys(known.classes_of(spec.driver, device), why)
    counted = {name: each for name, each in counted.items() if name not in uncounted}
    smallest: dict[str, int] = {}
    for amounts in _by_node(current, DeviceCatalog(counted)).values():
        for name, count in amounts.items():
            smallest[name] = min(count, smallest.get(name, count))
    return DeviceCatalog(counted, uncounted, smallest, extended_resources(listed))


def extended_resources(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """By extended resource that a class names, the class."""
    named = ((each.spec.extended_resource_name, each.metadata.name) for each in classes)
    return {resource: name for resource, name in named if resource}


def requested_classes(requested: Iterable[str], extended: Mapping[str, str]) -> list[str]:
    """The classes of which pods get devices that request these resources."""
    by_name = (extended.get(name) or (is_device(name) and name.removeprefix(_PREFIX)) for name in requested)
    return sorted({name for name in by_name if name})


def devices_by_node(slices: Iterable[DeviceSlice], known: DeviceCatalog) -> dict[str, dict[str, int]]:
    """By node and resource, how many devices there are without a taint that keeps pods out."""
    return {
        node: {resource: count for name, count in amounts.items() for resource in resources_of(name, known)}
        for node, amounts in _by_node(newest(slices), known).items()
    }


def resources_of(device_class: str, known: DeviceCatalog) -> list[str]:
    """The names under which devices of a class are counted: also the extended resource that it names."""
    by_request = (name for name, each in known.extended.items() if each == device_class)
    return [resource_of(device_class), *by_request]


def newest(slices: Iterable[DeviceSlice]) -> Iterator[DeviceSliceSpec]:
    """The specs of slices. Of each pool only those of its newest generation count, as for the scheduler."""
    listed = [each.spec for each in slices]
    generations: dict[tuple[str, str], int] = {}
    for spec in listed:
        pool = (spec.driver, spec.pool.name)
        generations[pool] = max(generations.get(pool, 0), spec.pool.generation)
    return (spec for spec in listed if spec.pool.generation == generations[spec.driver, spec.pool.name])


def claimed(claims: Iterable[Body], known: DeviceCatalog) -> Claimed:
    """What the specs of claims ask for. A device may belong to several classes, so each request counts for
    all classes that surely have its devices."""
    found: Counter[str] = Counter()
    classes: dict[str, None] = {}
    uncounted: dict[str, None] = {}
    for request in (each for spec in claims for each in (spec.get("devices") or {}).get("requests") or ()):
        exactly = request.get("exactly") or {}
        name = exactly.get("deviceClassName")
        if exactly.get("adminAccess"):
            continue  # such a request uses devices beside their owners
        if not name:
            uncounted[f"request {request.get('name', '')}: it has alternatives"] = None
        elif exactly.get("tolerations"):
            uncounted[f"devices of class {name}: tainted ones are tolerated"] = None
        elif name in known.uncounted:
            uncounted[f"devices of class {name}: {known.uncounted[name]}"] = None
        else:
            classes[name] = None
            for each in known.consumed_with(name):
                found[resource_of(each)] += _count(exactly, known.smallest.get(name, 1))
    return Claimed(dict(found), tuple(classes), tuple(uncounted))


def _count(exactly: Body, smallest: int) -> int:
    """How many devices a request takes. All devices of a node are as many as the smallest node has: in most
    clusters all nodes have the same number, and on a larger node the rest is assumed to be free."""
    if exactly.get("allocationMode") == "All":
        return smallest
    return int(exactly.get("count") or 1)


def _by_node(specs: Iterable[DeviceSliceSpec], known: DeviceCatalog) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    counts: dict[tuple[str, int], Counter[str]] = {}
    for spec in (each for each in specs if each.node_name):
        kind = (spec.driver, id(spec.devices))  # nodes of one kind share one tuple
        if kind not in counts:
            of_devices = (known.classes_of(spec.driver, each) for each in spec.devices if _usable(each))
            counts[kind] = Counter(name for classes in of_devices for name in classes)
        found.setdefault(spec.node_name, Counter()).update(counts[kind])
    return found


def _not_counted(spec: DeviceSliceSpec, device: CountedDevice) -> str:
    if device.allow_multiple_allocations:
        return "claims can share its devices"
    return "" if spec.node_name else "its devices do not belong to one node"


def _usable(device: CountedDevice) -> bool:
    return not any(taint.effect in _KEEPS_OUT for taint in device.taints)
