"""The requests of a pod as the scheduler counts them (k8s.io/component-helpers/resource, Kubernetes 1.37).

The larger of what all containers and sidecars need together and what each init container needs with the
sidecars before it; pod-level resources replace CPU, memory and huge pages; overhead is added. While a resize
is under way, the largest of requested, allocated and actual resources counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from grove.api.formats.quantities import parse
from grove.topology.placement.model import PODS

Body = Mapping[str, Any]
_Exact = dict[str, Fraction]
_Source = Callable[[Body], Mapping[str, Any] | None]

_CPU = "cpu"
_POD_LEVEL = (_CPU, "memory")
_HUGE_PAGES = "hugepages-"


def amounts(resources: Mapping[str, Any]) -> dict[str, int]:
    """A resource list, such as the allocatable of a node, in the integers that the scheduler counts."""
    return _whole(_exact(resources))


def pod_requests(pod: Body) -> dict[str, int]:
    """The requests of a pod, with its place in the pod count of a node."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    infeasible = _resize_infeasible(status)
    total = _containers(spec, status, infeasible)
    total |= _pod_level(spec, status, infeasible)
    _add(total, _exact(spec.get("overhead") or {}))
    return {**_whole(total), PODS: 1}


def _containers(spec: Body, status: Body, infeasible: bool) -> _Exact:
    """The largest of requested, allocated and actual requests of all containers."""
    by_name = _statuses(status)
    allocated, actual = status.get("allocatedResources"), (status.get("resources") or {}).get("requests")
    found: list[_Exact] = []
    if not infeasible:
        found.append(_aggregate(spec, _spec_requests))
    if allocated is not None and actual is not None:
        # The kubelet reports sums for the whole pod.
        found += [_exact(allocated), _exact(actual)]
    elif by_name:
        found.append(_aggregate(spec, _reported(by_name, infeasible, ("allocatedResources",))))
        found.append(_aggregate(spec, _reported(by_name, infeasible, ("resources", "allocatedResources"))))
    return _largest(found)


def _pod_level(spec: Body, status: Body, infeasible: bool) -> _Exact:
    """Requests of the pod itself, which replace those of its containers."""
    wanted = (spec.get("resources") or {}).get("requests") or {}
    if not any(map(_is_pod_level, wanted)):
        return {}
    found = [wanted]
    if status.get("resources") is not None:
        reported = [status["resources"].get("requests"), status.get("allocatedResources")]
        found = [each for each in ([] if infeasible else [wanted]) + reported if each]
    largest = _largest(map(_exact, found))
    return {name: amount for name, amount in largest.items() if _is_pod_level(name)}


def _aggregate(spec: Body, read: _Source) -> _Exact:
    total: _Exact = {}
    for container in spec.get("containers") or ():
        _add(total, _exact(read(container) or {}))
    sidecars: _Exact = {}
    starting: _Exact = {}
    for container in spec.get("initContainers") or ():
        own = _exact(read(container) or {})
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            needed = sidecars
        else:
            needed = own
            _add(needed, sidecars)
        starting = _largest((starting, needed))
    return _largest((total, starting))


def _spec_requests(container: Body) -> Mapping[str, Any] | None:
    return (container.get("resources") or {}).get("requests")


def _reported(by_name: Mapping[str, Body], infeasible: bool, fields: tuple[str, ...]) -> _Source:
    """The requests that the status of a container reports in the first of these fields that it has."""

    def read(container: Body) -> Mapping[str, Any] | None:
        status = by_name.get(container.get("name", ""), {})
        for field in fields:
            value: Mapping[str, Any] | None = status.get(field)
            if field == "resources":
                value = (value or {}).get("requests")
            if value is not None:
                return value
        return None if infeasible else _spec_requests(container)

    return read


def _statuses(status: Body) -> dict[str, Body]:
    """By container, its status. Containers and init containers have different names."""
    listed = (status.get(field) or () for field in ("initContainerStatuses", "containerStatuses"))
    return {each.get("name", ""): each for statuses in listed for each in statuses}


def _resize_infeasible(status: Body) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _exact(resources: Mapping[str, Any]) -> _Exact:
    return {name: parse(amount) for name, amount in resources.items()}


def _add(total: _Exact, more: _Exact) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _largest(found: Iterable[_Exact]) -> _Exact:
    result: _Exact = {}
    for each in found:
        for name, amount in each.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result


def _whole(exact: _Exact) -> dict[str, int]:
    """Rounded up, as the scheduler does, CPU in thousandths."""
    return {name: ceil(amount * 1000 if name == _CPU else amount) for name, amount in exact.items()}
