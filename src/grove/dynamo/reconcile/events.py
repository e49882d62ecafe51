"""Events of a DynamoGraphDeployment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grove.api.intents import Create, Intent, Patch
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import naming
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.api.status import LEVELS, NOT_ADMITTED, READY, WAITING, GraphStatus
from grove.dynamo.graph import Graph, GraphComponent
from grove.dynamo.snapshot import StoredGraph
from grove.plan.conditions import find
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import reference

REPORTER = "dynamographdeployment-controller"
_PENDING = "TopologyConditionPending"
_MAX_NOTE = 1000
"""Characters of a note; the API server allows 1 kB."""


def constraint_events(graph: Graph, stored: StoredGraph, writes: Sequence[Intent]) -> Iterator[PlannedEvent]:
    """The event for the topology constraints of the set that a plan creates, if any."""
    for write in writes:
        if isinstance(write, Create) and write.target.kind == PodCliqueSet.KIND.name and graph.constrained:
            whole = [f"graph to {graph.topology.domain}"] if graph.topology.domain else []
            domains = whole + [f"{each.name} to {each.domain}" for each in graph.components if each.domain]
            note = f"Applied topology constraints: {', '.join(domains)}"
            yield _event(stored, "TopologyConstraintsApplied", note, intent=write.id)


def scaling_events(
    graph: Graph, stored: StoredGraph, changes: Sequence[tuple[GraphComponent, int]], patch: Patch
) -> Iterator[PlannedEvent]:
    """An event for each component that the patch scales."""
    for component, count in changes:
        adapter = f"{ScalingAdapter.KIND.name} {naming.child_object(graph, component)}"
        note = f"Scales {component.name} from {component.replicas} to {count} replicas, as set in {adapter}"
        yield _event(stored, "Scaled", note, intent=patch.id)


def status_events(stored: StoredGraph, desired: GraphStatus) -> Iterator[PlannedEvent]:
    """The events of a status: a failure, topology levels that are unavailable, or what pods wait for, if
    these are new."""
    before, after = find(stored.status.conditions, READY), find(desired.conditions, READY)
    known = before and (before.reason, before.message)
    if desired.state == "failed" and after is not None and known != (after.reason, after.message):
        yield _event(stored, "ReconcileFailed", after.message, warning=True)
    before, after = find(stored.status.conditions, LEVELS), find(desired.conditions, LEVELS)
    bad = after is not None and after.status != "True" and after.reason != _PENDING
    if after is not None and bad and (before is None or before.reason != after.reason):
        yield _event(stored, after.reason, after.message, warning=True)
    for type_ in (WAITING, NOT_ADMITTED):
        before, after = find(stored.status.conditions, type_), find(desired.conditions, type_)
        if after is not None and (before is None or before.reason != after.reason):
            yield _event(stored, after.reason, after.message, warning=True)


def _event(
    stored: StoredGraph, reason: str, note: str, *, warning: bool = False, intent: str = ""
) -> PlannedEvent:
    return PlannedEvent(reference(stored), reason, note[:_MAX_NOTE], warning, intent, reporter=REPORTER)
