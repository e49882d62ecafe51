"""Devices that exist only in ResourceSlices, counted like a resource: by device class, how many a node has
and how many a claim asks for.

A device belongs to a class if the class selects its driver. What cannot be counted this way (other selectors,
shared capacity, all devices, alternatives) is not counted: it is assumed to fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]

_PREFIX = "deviceclass/"
_DRIVER = re.compile(r"""\s*device\.driver\s*==\s*(["'])([^"']+)\1\s*""")
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def resource_of(device_class: str) -> str:
    """The name under which devices of a class are counted."""
    return _PREFIX + device_class


def drivers(classes: Iterable[Body]) -> dict[str, str]:
    """By device class, the driver of its devices, for classes that select by driver alone."""
    found = {}
    for each in classes:
        selectors = (each.get("spec") or {}).get("selectors") or ()
        expressions = [((one.get("cel") or {}).get("expression") or "") for one in selectors]
        match = _DRIVER.fullmatch(expressions[0]) if len(expressions) == 1 else None
        if match:
            found[each["metadata"]["name"]] = match[2]
    return found


def devices_by_node(slices: Iterable[Body], driver_of_class: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """By node and resource, how many devices there are without a taint that keeps pods out. Of each pool only
    the slices of its newest generation count, as for the scheduler."""
    listed = [each.get("spec") or {} for each in slices]
    newest: dict[tuple[str, str], int] = {}
    for spec in listed:
        pool = _pool(spec)
        newest[pool] = max(newest.get(pool, 0), _generation(spec))
    counts: dict[tuple[str, str], int] = Counter()
    for spec in listed:
        if spec.get("nodeName") and _generation(spec) == newest[_pool(spec)]:
            counts[spec["nodeName"], spec.get("driver", "")] += sum(map(_usable, spec.get("devices") or ()))
    found: dict[str, dict[str, int]] = {}
    for (node, driver), count in counts.items():
        for name, of_class in driver_of_class.items():
            if of_class == driver:
                found.setdefault(node, {})[resource_of(name)] = count
    return found


def claimed(claims: Iterable[Body], driver_of_class: Mapping[str, str]) -> dict[str, int]:
    """By resource, how many devices the specs of claims ask for. Two classes of one driver share its devices,
    so each request counts for all classes of the driver."""
    found: Counter[str] = Counter()
    for spec in claims:
        for device_class, count in _exact_requests(spec):
            driver = driver_of_class.get(device_class)
            for name, of_class in driver_of_class.items():
                if driver is not None and of_class == driver:
                    found[resource_of(name)] += count
    return dict(found)


def _exact_requests(spec: Body) -> Iterator[tuple[str, int]]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly") or {}
        mode = exactly.get("allocationMode") or "ExactCount"
        if exactly.get("deviceClassName") and mode == "ExactCount" and not exactly.get("adminAccess"):
            yield exactly["deviceClassName"], int(exactly.get("count") or 1)


def _usable(device: Body) -> bool:
    return not any(taint.get("effect") in _KEEPS_OUT for taint in device.get("taints") or ())


def _pool(spec: Body) -> tuple[str, str]:
    return spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")


def _generation(spec: Body) -> int:
    return int((spec.get("pool") or {}).get("generation") or 0)
