"""Plans one DynamoGraphDeployment: from a snapshot to writes, status and events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from grove.api.intents import Create, Intent, Patch
from grove.dynamo import keys
from grove.dynamo.admission import graph_validation
from grove.dynamo.backends import object_writes
from grove.dynamo.context import provider
from grove.dynamo.decode.normalize import ParsedGraph
from grove.dynamo.graph import Graph
from grove.dynamo.reconcile import scaling, stored_version
from grove.dynamo.reconcile.events import constraint_events, scaling_events
from grove.dynamo.reconcile.status import graph_status, plan_failed, plan_rejected, status_update
from grove.dynamo.render import auxiliary_objects, gpu_claims
from grove.dynamo.snapshot import GraphBackend, GraphSnapshot, StoredGraph
from grove.plan.model import Plan, PlannedEvent
from grove.plan.writes import builders


def plan_graph(snapshot: GraphSnapshot, backends: Mapping[str, GraphBackend], now: float) -> Plan:
    """Plan one graph. A graph that is being deleted needs no plan: garbage collection deletes its objects."""
    stored, parsed = snapshot.stored, snapshot.parsed
    if stored is None:  # its set is deleted, sooner than Kubernetes' garbage collector does
        return Plan((builders.delete(snapshot.workload),) if snapshot.workload is not None else ())
    if stored.metadata.deletion_timestamp is not None:
        return Plan()
    if parsed is None:
        return _with_rewrite(plan_rejected(stored, snapshot.decode_errors, now), stored, snapshot)
    graph = gpu_claims.with_claimed_gpus(parsed.graph, snapshot.context.claim_templates)
    plan = _plan_decoded(stored, replace(parsed, graph=graph), snapshot, backends, now)
    return _with_rewrite(plan, stored, snapshot)


def _with_rewrite(plan: Plan, stored: StoredGraph, snapshot: GraphSnapshot) -> Plan:
    """The plan, with the patch that stores the graph in v1beta1 if it has no other patch of the graph. No
    other write depends on it. Without conversion clients would no longer find the fields that they wrote."""
    patch = stored_version.rewrite(stored) if snapshot.context.converts else None
    if patch is None or any(each.id == patch.id for each in plan.intents):
        return plan
    return replace(plan, intents=(*plan.intents, patch))


def _plan_decoded(
    stored: StoredGraph,
    parsed: ParsedGraph,
    snapshot: GraphSnapshot,
    backends: Mapping[str, GraphBackend],
    now: float,
) -> Plan:
    graph = parsed.graph
    if errors := list(graph_validation.blocking_errors(parsed, snapshot.context)):
        return plan_rejected(stored, errors, now)
    backend = backends.get(provider(graph.own_annotations))
    if backend is None:
        return plan_failed(stored, "unsupported_workload_provider", provider(graph.own_annotations), now)
    uncounted = gpu_claims.problems(graph, snapshot.context.claim_templates)
    if missing := [*_missing_claims(graph, snapshot), *uncounted]:
        return plan_rejected(stored, missing, now, backend.conditions(graph, snapshot))
    workloads = backend.plan_workloads(graph, snapshot)
    if workloads.errors:
        return plan_rejected(stored, workloads.errors, now, backend.conditions(graph, snapshot))
    patches, events = _plan_graph_patch(graph, stored, snapshot)
    first = (*patches, *_auxiliary_writes(graph, snapshot), *scaling.adapter_writes(graph, snapshot, now))
    writes = (*first, *(_after(first, each) for each in workloads.writes))
    desired = graph_status(graph, snapshot, stored.status, backend, workloads.applied, now)
    if not writes:
        desired = replace(desired, observed_generation=graph.generation)
    return Plan(
        intents=writes,
        status_updates=(status_update(stored, desired),),
        events=(*constraint_events(graph, stored, writes), *events),
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


def _plan_graph_patch(
    graph: Graph, stored: StoredGraph, snapshot: GraphSnapshot
) -> tuple[list[Patch], list[PlannedEvent]]:
    """The patch of the graph itself, if any: the backend is recorded in an annotation before any other write;
    replicas follow the adapters after that, since a plan has one patch of an object."""
    if keys.PROVIDER not in graph.own_annotations:
        chosen = {keys.PROVIDER: provider(graph.own_annotations)}
        body = {"metadata": {"uid": graph.uid, "annotations": chosen}}
        return [Patch(builders.target(stored), body)], []
    if not (changes := scaling.replica_changes(graph, snapshot)):
        return [], []
    patch = scaling.replicas_patch(stored, changes)
    return [patch], list(scaling_events(graph, stored, changes, patch))


def _auxiliary_writes(graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
    found: list[Intent | None] = []
    for body in snapshot.auxiliary.owned:
        present = snapshot.children.get((body["kind"], body["metadata"]["name"]))
        # A PersistentVolumeClaim may have another owner and is used as it is.
        shared = body["kind"] == "PersistentVolumeClaim"
        found.append(object_writes.write_for(object_writes.with_owner(graph, body), present, shared=shared))
    for body in snapshot.auxiliary.shared:
        present = snapshot.children.get((body["kind"], body["metadata"]["name"]))
        found.append(object_writes.write_for(body, present, shared=True))
    if snapshot.ssh_key is not None:
        secret = auxiliary_objects.ssh_secret(graph, *snapshot.ssh_key)
        found.append(Create(object_writes.target(secret), secret, may_exist=True, write_only=True))
    return [each for each in found if each is not None]
