"""Why Kueue does not admit the pods of a graph."""

from __future__ import annotations

from textwrap import shorten

from grove import timing
from grove.api.meta import Condition
from grove.dynamo.api.status import NOT_ADMITTED
from grove.dynamo.graph import Graph, GraphComponent
from grove.dynamo.render.topology_affinity import requests_nothing
from grove.dynamo.snapshot import GraphReason, GraphSnapshot
from grove.plan.conditions import new_condition

WORKLOAD_NOT_ADMITTED = "WorkloadNotAdmitted"
"""The reason of the condition and of the event, and the code in the message of `Ready`."""


def reasons(graph: Graph, snapshot: GraphSnapshot) -> list[GraphReason]:
    """The reason of all components of which a Workload is not admitted."""
    found = (_refusal(each, snapshot) for each in graph.components)
    lines = [line for line in found if line]
    return [GraphReason(WORKLOAD_NOT_ADMITTED, ". ".join(lines))] if lines else []


def conditions(graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
    """The condition with that reason, if there is one."""
    return [new_condition(NOT_ADMITTED, True, each.code, each.message) for each in reasons(graph, snapshot)]


def is_refused(component: GraphComponent, snapshot: GraphSnapshot) -> bool:
    """Whether Kueue does not admit pods of a component."""
    return any(each.refusal for each in snapshot.queued.get(component.name, ()))


def _refusal(component: GraphComponent, snapshot: GraphSnapshot) -> str:
    """Why pods of a component are not admitted: of the first Workload by name; empty if all are admitted."""
    refused = [each for each in snapshot.queued.get(component.name, ()) if each.refusal]
    if not refused:
        return ""
    first = min(refused, key=lambda each: each.metadata.name)
    said = shorten(first.refusal, timing.SCHEDULER_MESSAGE_LENGTH, placeholder=" ...")
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    queue = first.spec.queue_name
    remedy = (
        f"set resource requests of {component.name}"
        if requests_nothing(component)
        else f"lower requests of {component.name}, or change quotas or flavors of LocalQueue {queue}"
    )
    name = first.metadata.name
    return f"{component.name}: Kueue does not admit Workload {name}{more}: {said}; {remedy}"
