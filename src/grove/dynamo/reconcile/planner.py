"""Plans one DynamoGraphDeployment: from a snapshot to writes, status and events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api.intents import Create, Intent, Patch, Target
from grove.api.meta import Condition
from grove.dynamo import keys, naming
from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.component_rules import NO_MULTINODE_BACKEND
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.api.status import LEVELS, GraphStatus
from grove.dynamo.backends import object_writes
from grove.dynamo.context import provider
from grove.dynamo.graph import Graph
from grove.dynamo.reconcile import scaling
from grove.dynamo.render import auxiliary_objects, gpu_claims
from grove.dynamo.snapshot import ComponentState, GraphBackend, GraphSnapshot, raw
from grove.plan.model import StatusUpdate
from grove.plan.status.conditions import find, merge_conditions, new_condition
from grove.rules.decode import ObjectFormatError

READY = "Ready"
UNSUPPORTED = "UnsupportedFields"
_KIND = DynamoGraphDeployment.KIND
_PENDING = "TopologyConditionPending"


class GraphEvent(Struct, frozen=True):
    """An event to emit."""

    reason: str
    note: str
    warning: bool = False
    of_status: bool = True
    """Whether it is emitted after the status is written; else after the writes have succeeded."""


class GraphPlan(Struct, frozen=True):
    """Writes, the desired status, and the events to emit."""

    intents: tuple[Intent, ...] = ()
    status_update: StatusUpdate | None = None
    events: tuple[GraphEvent, ...] = ()


def plan_graph(snapshot: GraphSnapshot, backends: Mapping[str, GraphBackend], now: float) -> GraphPlan:
    """Plan one graph. A graph that is being deleted needs no plan: garbage collection deletes its objects."""
    if snapshot.stored.metadata.deletion_timestamp is not None:
        return GraphPlan()
    try:
        graph, errors = graph_validation.blocking_errors(raw(snapshot.stored), snapshot.context)
    except ObjectFormatError as decode_errors:
        return _rejected(snapshot, [str(error) for error in decode_errors.errors], now)
    if errors:
        return _rejected(snapshot, [str(error) for error in errors], now)
    backend = backends.get(provider(graph.own_annotations))
    if backend is None:
        return _failed(snapshot, "unsupported_workload_provider", provider(graph.own_annotations), now)
    uncounted = gpu_claims.problems(graph, snapshot.context.claim_templates)
    if missing := [*_missing_claims(graph, snapshot), *uncounted]:
        return _rejected(snapshot, missing, now)
    if problems := backend.problems(graph, snapshot):
        return _rejected(snapshot, [str(error) for error in problems], now)
    first = (
        *_graph_patch(graph, snapshot),
        *_auxiliary_writes(graph, snapshot),
        *scaling.adapter_writes(graph, snapshot, now),
    )
    writes = (*first, *(_after(first, each) for each in backend.writes(graph, snapshot)))
    desired = _status(graph, snapshot, backend, now)
    if not writes:
        desired = replace(desired, observed_generation=graph.generation)
    return GraphPlan(
        writes, _status_update(snapshot, desired), tuple(_new_events(graph, snapshot, desired, writes))
    )


def _after(first: Sequence[Intent], write: Intent) -> Intent:
    """The write, with the objects that its pods refer to as dependencies if it creates a workload."""
    needed = tuple(each.id for each in first if isinstance(each, Create | Patch))
    return replace(write, after=needed) if isinstance(write, Create) else write


def _missing_claims(graph: Graph, snapshot: GraphSnapshot) -> list[str]:
    return [
        f"spec.pvcs[{index}]: PersistentVolumeClaim {claim.name} does not exist: create it, or set create"
        for index, claim in enumerate(graph.claims)
        if not claim.create and ("PersistentVolumeClaim", claim.name) not in snapshot.children
    ]


def _graph_patch(graph: Graph, snapshot: GraphSnapshot) -> list[Patch]:
    """The patch of the graph itself, if any: the backend is recorded in an annotation before any other write;
    replicas follow the adapters after that, since a plan has one patch of an object."""
    if keys.PROVIDER in graph.own_annotations:
        changes = scaling.replica_changes(graph, snapshot)
        return [scaling.replicas_patch(graph, changes)] if changes else []
    about = Target(_KIND.api_version, _KIND.name, graph.name, graph.namespace)
    chosen = {keys.PROVIDER: provider(graph.own_annotations)}
    return [Patch(about, {"metadata": {"uid": graph.uid, "annotations": chosen}})]


def _auxiliary_writes(graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
    found: list[Intent | None] = []
    for body in auxiliary_objects.owned_objects(graph):
        present = snapshot.children.get((body["kind"], body["metadata"]["name"]))
        # A PersistentVolumeClaim may have another owner and is used as it is.
        shared = body["kind"] == "PersistentVolumeClaim"
        found.append(object_writes.write_for(object_writes.with_owner(graph, body), present, shared=shared))
    for body in auxiliary_objects.shared_objects(graph):
        present = snapshot.children.get((body["kind"], body["metadata"]["name"]))
        found.append(object_writes.write_for(body, present, shared=True))
    if snapshot.ssh_key is not None:
        secret = auxiliary_objects.ssh_secret(graph, *snapshot.ssh_key)
        found.append(Create(object_writes.target(secret), secret, may_exist=True, write_only=True))
    return [each for each in found if each is not None]


def _status(graph: Graph, snapshot: GraphSnapshot, backend: GraphBackend, now: float) -> GraphStatus:
    states = {each.name: backend.component_state(graph, each, snapshot) for each in graph.components}
    ready = _ready(states) if not snapshot.last_error else _reconcile_error(snapshot.last_error)
    conditions = [ready, *backend.conditions(graph, snapshot)]
    state = "successful" if ready.status == "True" else "failed" if snapshot.last_error else "pending"
    return GraphStatus(
        observed_generation=snapshot.stored.status.observed_generation,
        state=state,
        conditions=_dated_conditions(snapshot, conditions, now),
        components={name: each.status for name, each in states.items() if each.status is not None},
        restart=backend.restart(graph, snapshot),
        applied_topology_constraints=backend.applied(graph, snapshot),
    )


def _ready(states: Mapping[str, ComponentState]) -> Condition:
    behind = {name: each for name, each in states.items() if each.reason}
    if not behind:
        return new_condition(READY, True, "all_resources_are_ready", "All components are ready")
    reasons = {each.reason for each in behind.values()}
    why = reasons.pop() if len(reasons) == 1 else "mixed_not_ready_reasons"
    return new_condition(
        READY, False, why, "; ".join(f"{name}: {each.message}" for name, each in behind.items())
    )


def _reconcile_error(message: str) -> Condition:
    return new_condition(READY, False, "failed_to_reconcile_the_resources", message)


def _rejected(snapshot: GraphSnapshot, errors: list[str], now: float) -> GraphPlan:
    """The plan for an invalid graph: workloads stay as they are, and the status reports the errors."""
    unsupported = [each for each in errors if ": Forbidden: not supported" in each]
    extra = [new_condition(UNSUPPORTED, True, "NotSupported", "; ".join(unsupported))] if unsupported else []
    no_backend = any(NO_MULTINODE_BACKEND in each for each in errors)
    reason = "no_multinode_orchestrator_available" if no_backend else "failed_to_reconcile_the_resources"
    return _failed(snapshot, reason, "; ".join(errors), now, extra)


def _failed(
    snapshot: GraphSnapshot, reason: str, message: str, now: float, extra: Sequence[Condition] = ()
) -> GraphPlan:
    known = snapshot.stored.status
    kept = tuple(each for each in known.conditions if each.type != UNSUPPORTED or extra)
    conditions = merge_conditions(kept, [new_condition(READY, False, reason, message), *extra], now)
    desired = replace(known, state="failed", conditions=conditions)
    return GraphPlan((), _status_update(snapshot, desired), tuple(_failure_events(snapshot, desired)))


def _failure_events(snapshot: GraphSnapshot, desired: GraphStatus) -> list[GraphEvent]:
    """The event for a failure, if reason or message changed."""
    before, after = find(snapshot.stored.status.conditions, READY), find(desired.conditions, READY)
    if desired.state != "failed" or after is None:
        return []
    if before is not None and (before.reason, before.message) == (after.reason, after.message):
        return []
    return [GraphEvent("ReconcileFailed", after.message, warning=True)]


def _dated_conditions(
    snapshot: GraphSnapshot, conditions: list[Condition], now: float
) -> tuple[Condition, ...]:
    """The conditions with transition times; types that are no longer set are removed."""
    types = {each.type for each in conditions}
    known = tuple(each for each in snapshot.stored.status.conditions if each.type in types)
    return merge_conditions(known, conditions, now)


def _status_update(snapshot: GraphSnapshot, desired: GraphStatus) -> StatusUpdate:
    meta = snapshot.stored.metadata
    about = Target(_KIND.api_version, _KIND.name, meta.name, meta.namespace)
    return StatusUpdate(about, snapshot.stored.status, desired, resource_version=meta.resource_version)


def _new_events(
    graph: Graph, snapshot: GraphSnapshot, desired: GraphStatus, writes: tuple[Intent, ...]
) -> list[GraphEvent]:
    events = []
    creates_set = any(isinstance(each, Create) and each.target.kind == "PodCliqueSet" for each in writes)
    if creates_set and graph.constrained:
        domains = ", ".join(_constraints(graph))
        events.append(
            GraphEvent(
                "TopologyConstraintsApplied", f"Applied topology constraints: {domains}", of_status=False
            )
        )
    changes = scaling.replica_changes(graph, snapshot) if keys.PROVIDER in graph.own_annotations else ()
    for component, count in changes:
        note = f"Scales {component.name} from {component.replicas} to {count} replicas"
        adapter = f"{ScalingAdapter.KIND.name} {naming.child_object(graph, component)}"
        events.append(GraphEvent("Scaled", f"{note}, as set in {adapter}", of_status=False))
    events += _failure_events(snapshot, desired)
    before, after = find(snapshot.stored.status.conditions, LEVELS), find(desired.conditions, LEVELS)
    bad = after is not None and after.status != "True" and after.reason != _PENDING
    if after is not None and bad and (before is None or before.reason != after.reason):
        events.append(GraphEvent(after.reason, after.message, warning=True))
    return events


def _constraints(graph: Graph) -> list[str]:
    whole = [f"graph to {graph.topology.domain}"] if graph.topology.domain else []
    return whole + [f"{each.name} to {each.domain}" for each in graph.components if each.domain]
