"""What is refused of a ClusterTopology or ClusterTopologyBinding, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.rules import shape
from grove.rules.guard import judged
from grove.rules.model import Facts, FieldError, Verdict, duplicate, invalid
from grove.schedulers import kai, kai_topology

Body = dict[str, Any]

_BINDINGS = "spec.schedulerTopologyReferences"
"""What upstream calls `schedulerTopologyBindings` in its errors: clients look for it."""
_REFERENCES = "spec.schedulerReferences"


@judged
def on_create(new: Body, facts: Facts) -> Verdict:
    """Judges a topology of either kind that is to be made: the raw JSON object. Never raises."""
    topology = shape.topology(new)
    errors = (*_levels(topology), *_schedulers(topology, facts))
    return Verdict(errors, tuple(_unwelcome(topology, facts)))


@judged
def on_update(old: Body, new: Body, facts: Facts) -> Verdict:
    """Judges a change: both raw JSON objects. Levels may be edited in place; a backend that has been switched
    off since is only refused where it is new. Never raises."""
    verdict = on_create(new, facts)
    if verdict.allowed:
        return verdict
    known = set(map(str, on_create(old, facts).errors))
    return Verdict(tuple(error for error in verdict.errors if str(error) not in known))


def _unwelcome(topology: shape.Topology, facts: Facts) -> Iterator[str]:
    """Levels of which a scheduler will not make a topology. Others may use them, so they are not wrong."""
    if kai.NAME in facts.schedulers and kai.NAME not in dict(topology.spec.references):
        for why in kai_topology.refused(tuple(level.key for level in topology.spec.levels)):
            yield f"spec.levels: no topology will be made for {kai.NAME}: {why}"


def _levels(topology: shape.Topology) -> Iterator[FieldError]:
    domains: set[str] = set()
    labels: set[str] = set()
    for index, level in enumerate(topology.spec.levels):
        if level.domain in domains:
            yield duplicate(f"spec.levels[{index}].domain", level.domain)
        if level.key in labels:
            yield duplicate(f"spec.levels[{index}].key", level.key)
        domains.add(level.domain)
        labels.add(level.key)


def _schedulers(topology: shape.Topology, facts: Facts) -> Iterator[FieldError]:
    seen: set[str] = set()
    aware = {backend.name for backend in facts.backends.topology_aware}
    for path, listed in (
        (_REFERENCES, [each.scheduler_name for each in topology.spec.scheduler_references]),
        (_BINDINGS, [each.scheduler_name for each in topology.spec.scheduler_topology_bindings]),
    ):
        for index, name in enumerate(listed):
            place = f"{path}[{index}].schedulerName"
            if name in seen:
                yield duplicate(place, name)
            elif name not in facts.schedulers:
                yield invalid(place, name, "scheduler backend is not enabled in Grove")
            elif name not in aware:
                yield invalid(place, name, "scheduler backend does not implement topology-aware scheduling")
            seen.add(name)
