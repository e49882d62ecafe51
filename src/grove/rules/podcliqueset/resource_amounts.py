"""Validation of the quantities in a pod spec: limits, requests and overhead.

The schema of the API server accepts texts that are no quantities, such as `1e1.5`. No pod can be created from
them, and the placement cannot count them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grove.api.field_errors import FieldError, invalid
from grove.api.formats import quantities
from grove.rules.decode import CliquePodSpec, PodResources


def errors(path: str, pod: CliquePodSpec) -> Iterator[FieldError]:
    """Errors for quantities of a pod spec and its containers that cannot be parsed."""
    yield from _resources(f"{path}.resources", pod.resources)
    yield from _amounts(f"{path}.overhead", pod.overhead)
    for field, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, container in enumerate(containers):
            yield from _resources(f"{path}.{field}[{index}].resources", container.resources)


def _resources(path: str, resources: PodResources) -> Iterator[FieldError]:
    yield from _amounts(f"{path}.limits", resources.limits)
    yield from _amounts(f"{path}.requests", resources.requests)


def _amounts(path: str, amounts: Mapping[str, Any]) -> Iterator[FieldError]:
    for name, amount in amounts.items():
        try:
            quantities.parse(amount)
        except ValueError as problem:
            yield invalid(f"{path}[{name}]", amount, str(problem))
