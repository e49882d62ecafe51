"""Metrics of the placement of gangs: what was decided, what became of it, and what is free.

Names and labels are part of the interface: see docs/operator.md. All are counted by the leader, which alone
places gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Counter, Gauge, Histogram

from grove.plan.placement.assignment import Assignment, Decision, GangName, Waiting
from grove.plan.placement.state import GangState

decisions = Counter(
    "grove_placement_decisions_total",
    "Decisions on gangs: pods created at once (direct), nominated to nodes (nominated), released without a "
    "place for all of them (partial), waiting for nodes (waiting), or no answer within the limit (gave-up)",
    ["decision"],
)
conflicts = Counter(
    "grove_placement_conflicts_total",
    "Gangs that were decided on again before their release, because their nodes were taken or pods in flight "
    "were not bound in time",
)
unschedulable = Counter(
    "grove_placement_unschedulable_total",
    "Gangs of which the scheduler found no node for a pod after its release",
)
retries = Counter(
    "grove_placement_retries_total", "Gangs that could not be completed, and were started over with new pods"
)
holds = Counter(
    "grove_placement_holds_total", "How many times nodes in use were held for a gang that had waited for long"
)
round_seconds = Histogram(
    "grove_placement_round_seconds",
    "Time of one round of placement: deciding on all gangs that have no nodes",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
free_slots = Gauge(
    "grove_topology_free_slots",
    "How many gangs of this many GPUs fit into the domains of a level, each into one domain",
    ["topology", "level", "gpus"],
)


def count_round(before: Iterable[GangState], after: Mapping[GangName, GangState]) -> None:
    """Count what a round has changed. `after` has the gangs that have changed."""
    for old in before:
        if (new := after.get(old.demand.gang)) is not None:
            for counter in _events(old, new):
                counter.inc()


def _events(old: GangState, new: GangState) -> Iterator[Counter]:
    was, now = old.decision, new.decision
    if (kind := _kind(now)) and (kind != _kind(was) or _is_undone(was, now)):
        yield decisions.labels(kind)
    if _is_undone(was, now):
        yield conflicts
    if new.hold is not None and old.hold is None:
        yield holds
    if new.stuck_since and not old.stuck_since:
        yield unschedulable
    if isinstance(now, Assignment) and now.failed and not (isinstance(was, Assignment) and was.failed):
        yield retries


def _is_undone(was: Decision | None, now: Decision | None) -> bool:
    """Whether nominations were given up before their release."""
    if not isinstance(was, Assignment) or not was.gated:
        return False
    return not isinstance(now, Assignment) or (now.gated and now.nodes != was.nodes) or not now.nominated


def _kind(decision: Decision | None) -> str:
    match decision:
        case Waiting(gave_up=True):
            return "gave-up"
        case Waiting():
            return "waiting"
        case Assignment(nominated=True):
            return "nominated"
        case Assignment() if not all(decision.nodes.values()):
            return "partial"
        case Assignment():
            return "direct"
    return ""


def set_free_slots(topology: str, levels: Mapping[str, Mapping[int, int]]) -> None:
    """Publish the free slots of a topology: by level, how many of each size."""
    clear_free_slots(topology)
    for level, slots in levels.items():
        for size, count in slots.items():
            free_slots.labels(topology, level, str(size)).set(count)


def clear_free_slots(topology: str) -> None:
    """Publish no free slots of a topology any more."""
    free_slots.remove_by_labels({"topology": topology})
