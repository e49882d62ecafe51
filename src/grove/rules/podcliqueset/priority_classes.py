"""Validation of the PriorityClasses that a set and its cliques name: no pod can be created with one that does
not exist."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, invalid, not_found
from grove.rules import syntax
from grove.rules.decode import Workload
from grove.rules.model import Facts
from grove.schedulers.backend import ClusterLookup, ForeignKind

PRIORITY_CLASS = ForeignKind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)


def errors(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors for names that no class can have, and for classes that were looked up and do not exist."""
    for path, name in _named(workload):
        if wrong := list(syntax.subdomain(name)):
            yield from (invalid(path, name, why) for why in wrong)
        elif facts.found.get(_lookup(name), {}) is None:
            yield not_found(path, name, "create the PriorityClass, or name another one")


def lookups(workload: Workload) -> tuple[ClusterLookup, ...]:
    """The classes to look up, that of the set first."""
    return tuple(dict.fromkeys(_lookup(name) for _, name in _named(workload)))


def _named(workload: Workload) -> Iterator[tuple[str, str]]:
    """The paths of all fields that name a class, with the name."""
    if name := workload.template.priority_class_name:
        yield "spec.template.priorityClassName", name
    for index, pod in enumerate(workload.pods):
        if pod.priority_class_name:
            path = f"spec.template.cliques[{index}].spec.podSpec.spec.priorityClassName"
            yield path, pod.priority_class_name


def _lookup(name: str) -> ClusterLookup:
    return ClusterLookup(PRIORITY_CLASS, name, "")
