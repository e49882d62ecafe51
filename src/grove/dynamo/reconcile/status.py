"""The status of a DynamoGraphDeployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from grove.api.meta import Condition
from grove.dynamo.admission.component_rules import NO_MULTINODE_BACKEND
from grove.dynamo.api.status import NOT_ADMITTED, READY, WAITING, AppliedTopology, GraphStatus
from grove.dynamo.graph import Graph
from grove.dynamo.reconcile.events import status_events
from grove.dynamo.snapshot import ComponentState, GraphBackend, GraphReason, GraphSnapshot, StoredGraph
from grove.plan.conditions import merge_conditions, new_condition
from grove.plan.model import Plan, StatusUpdate
from grove.plan.writes import builders

UNSUPPORTED = "UnsupportedFields"
_UNKEPT = frozenset({UNSUPPORTED, WAITING, NOT_ADMITTED})
_FAILED = "failed_to_reconcile_the_resources"


def status_update(stored: StoredGraph, desired: GraphStatus) -> StatusUpdate:
    """The update to the desired status, with its events."""
    return builders.status_update(stored, desired, events=tuple(status_events(stored, desired)))


def graph_status(
    graph: Graph,
    snapshot: GraphSnapshot,
    known: GraphStatus,
    backend: GraphBackend,
    applied: tuple[AppliedTopology, ...],
    now: float,
) -> GraphStatus:
    """The status of a valid graph. Conditions of types that are no longer set are removed."""
    states = {each.name: backend.component_state(graph, each, snapshot) for each in graph.components}
    ready = _ready(states, backend.reasons(graph, snapshot))
    conditions = [ready, *backend.conditions(graph, snapshot)]
    types = {each.type for each in conditions}
    kept = tuple(each for each in known.conditions if each.type in types)
    return GraphStatus(
        observed_generation=known.observed_generation,
        state="successful" if ready.status == "True" else "pending",
        conditions=merge_conditions(kept, conditions, now),
        components={name: each.status for name, each in states.items() if each.status is not None},
        restart=backend.restart(graph, snapshot),
        applied_topology_constraints=applied,
    )


def plan_rejected(
    stored: StoredGraph, errors: Iterable[object], now: float, current: Sequence[Condition] = ()
) -> Plan:
    """The plan for an invalid graph: workloads stay as they are, and the status reports the errors.
    `current`: the conditions of the workloads, as far as they are known."""
    messages = list(map(str, errors))
    unsupported = [each for each in messages if ": Forbidden: not supported" in each]
    extra = [new_condition(UNSUPPORTED, True, "NotSupported", "; ".join(unsupported))] if unsupported else []
    no_backend = any(NO_MULTINODE_BACKEND in each for each in messages)
    reason = "no_multinode_orchestrator_available" if no_backend else _FAILED
    return plan_failed(stored, reason, "; ".join(messages), now, [*extra, *current])


def plan_failed(
    stored: StoredGraph, reason: str, message: str, now: float, extra: Sequence[Condition] = ()
) -> Plan:
    """The plan for a graph that cannot be reconciled: only its status is written. What pods wait for is not
    kept: it may be over."""
    known, types = stored.status, {each.type for each in extra}
    kept = tuple(each for each in known.conditions if each.type not in _UNKEPT or each.type in types)
    conditions = merge_conditions(kept, [new_condition(READY, False, reason, message), *extra], now)
    desired = replace(known, state="failed", conditions=conditions)
    return Plan(status_updates=(status_update(stored, desired),))


def with_error(plan: Plan, snapshot: GraphSnapshot, message: str, now: float) -> Plan:
    """The plan with the error of its writes in the status."""
    stored = snapshot.stored
    if stored is None or not plan.status_updates:
        return plan
    (planned,) = plan.status_updates
    known = tuple(each for each in stored.status.conditions if each.type == READY)
    (ready,) = merge_conditions(known, [new_condition(READY, False, _FAILED, message)], now)
    conditions = tuple(ready if each.type == READY else each for each in planned.desired.conditions)
    desired = replace(planned.desired, state="failed", conditions=conditions)
    return replace(plan, status_updates=(status_update(stored, desired),))


def _ready(states: Mapping[str, ComponentState], reasons: Sequence[GraphReason]) -> Condition:
    """Whether all components are ready; else the counts of those that are not, and why pods wait."""
    behind = {name: each for name, each in states.items() if each.reason}
    if not behind:
        return new_condition(READY, True, "all_resources_are_ready", "All components are ready")
    named = {each.reason for each in behind.values()}
    code = named.pop() if len(named) == 1 else "mixed_not_ready_reasons"
    counts = "; ".join(f"{name}: {each.message}" for name, each in behind.items())
    return new_condition(
        READY, False, code, ". ".join([counts, *(f"{each.code}: {each.message}" for each in reasons)])
    )
