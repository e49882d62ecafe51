"""The domain that the gangs of a replica share by the constraint of the set: scaled gangs follow the base
gang, and a base gang that starts over goes to where its scaled gangs run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.desired.expand import Gang
from grove.plan.members import pod_state
from grove.plan.placement.assignment import Pins, recorded
from grove.plan.snapshot import Snapshot


def levels_of(snapshot: Snapshot, attempt: int) -> tuple[str, ...]:
    """The node labels of the topology of the set's constraint (0), or of one of its fallbacks (1, ...)."""
    topology = snapshot.topology_of(attempt)
    return tuple(topology.keys.values()) if topology is not None else ()


def pins_of_base(snapshot: Snapshot, gang: Gang) -> Pins:
    """The pins of the base gang that the constraint of the whole set asks for: a scaled gang follows it."""
    shared = _shared_levels(snapshot, gang.base_gang)
    if not shared:
        return {}
    annotations = snapshot.gangs[gang.base_gang].metadata.annotations
    record = recorded(annotations, len(snapshot.fallback_topologies))
    pods = _pods_of(snapshot, {gang.base_gang})
    pins = _labels_of(snapshot, pods, shared) or next(iter(record.pins.values()), {})
    return {level: pins[level] for level in shared if level in pins}


def pins_of_scaled(snapshot: Snapshot, gang: Gang, scaled: Iterable[Gang]) -> Pins:
    """The labels of the domain in which pods of the scaled gangs of a base gang are ready; empty if none are,
    or some in several domains. Pods that are not ready may be on nodes that are lost: the base gang does not
    wait for these."""
    names = {each.name for each in scaled if each.base_gang == gang.name}
    pods = filter(pod_state.ready, _pods_of(snapshot, names)) if names else ()
    return _labels_of(snapshot, pods, _shared_levels(snapshot, gang.name))


def _shared_levels(snapshot: Snapshot, base_gang: str) -> tuple[str, ...]:
    """The level of the set's required constraint and all wider ones; empty if there is no such constraint."""
    base = snapshot.gangs.get(base_gang)
    if base is None or snapshot.topology is None:
        return ()
    constraint = base.spec.topology_constraint
    key = constraint.pack_constraint.required if constraint and constraint.pack_constraint else ""
    attempt = recorded(base.metadata.annotations, len(snapshot.fallback_topologies)).attempt
    levels = levels_of(snapshot, attempt)
    return levels[: levels.index(key) + 1] if key in levels else ()


def _pods_of(snapshot: Snapshot, gangs: set[str]) -> Iterator[Pod]:
    """The pods of gangs that do not terminate."""
    for pod in snapshot.pods:
        if pod.metadata.labels.get(labels.GANG) in gangs and not pod_state.terminating(pod):
            yield pod


def _labels_of(snapshot: Snapshot, pods: Iterable[Pod], levels: tuple[str, ...]) -> Pins:
    """The labels of the nodes of pods, if all nodes have the same: a rack may be renamed after a gang was
    placed there. Otherwise empty."""
    placements = snapshot.placements
    known = (placements.node_labels if placements is not None else None) or {}
    nodes = {pod.spec.node_name for pod in pods}
    found = {tuple(known[node].get(level) for level in levels) for node in nodes if node in known}
    values = found.pop() if len(found) == 1 else ()
    return {level: value for level, value in zip(levels, values, strict=False) if value}
