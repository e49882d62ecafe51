"""What to do about one deployment, and what to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api.intents import Create, Intent, Patch, Target
from grove.api.meta import Condition
from grove.dynamo import companions, devices, keys, naming, objects, rules, scaling
from grove.dynamo.adapters import ScalingAdapter
from grove.dynamo.graph import Graph
from grove.dynamo.parts import NOBODY_SPANS
from grove.dynamo.seen import Backend, Seen, Standing, raw
from grove.dynamo.surroundings import provider
from grove.dynamo.told import LEVELS, GraphStatus
from grove.dynamo.types import DynamoGraphDeployment
from grove.plan.facts import fact, find, settle
from grove.plan.model import Draft
from grove.rules.shape import Misshapen

READY = "Ready"
UNSUPPORTED = "UnsupportedFields"
_KIND = DynamoGraphDeployment.KIND
_PENDING = "TopologyConditionPending"


class Told(Struct, frozen=True):
    """Something worth an event."""

    reason: str
    note: str
    warning: bool = False
    of_status: bool = True
    """It holds once the status says so; else once the writes are done."""


class GraphPlan(Struct, frozen=True):
    """Writes, the status as it should read, and news for when it does."""

    intents: tuple[Intent, ...] = ()
    draft: Draft | None = None
    news: tuple[Told, ...] = ()


def plan_graph(seen: Seen, backends: Mapping[str, Backend], now: float) -> GraphPlan:
    """One pass over one deployment. What goes with its owner needs no plan: one that ends has none."""
    if seen.stored.metadata.deletion_timestamp is not None:
        return GraphPlan()
    try:
        graph, wrong = rules.standing(raw(seen.stored), seen.surroundings)
    except Misshapen as misshapen:
        return _refused(seen, [str(error) for error in misshapen.errors], now)
    if wrong:
        return _refused(seen, [str(error) for error in wrong], now)
    backend = backends.get(provider(graph.own_annotations))
    if backend is None:
        return _failed(seen, "unsupported_workload_provider", provider(graph.own_annotations), now)
    uncounted = devices.problems(graph, seen.surroundings.claim_templates)
    if missing := [*_missing_claims(graph, seen), *uncounted]:
        return _refused(seen, missing, now)
    if problems := backend.problems(graph, seen):
        return _refused(seen, [str(error) for error in problems], now)
    first = (*_stamp(graph), *_companions(graph, seen), *scaling.writes(graph, seen, now))
    writes = (*first, *(_after(first, each) for each in backend.writes(graph, seen)))
    desired = _status(graph, seen, backend, now)
    if not writes:
        desired = replace(desired, observed_generation=graph.generation)
    return GraphPlan(writes, _draft(seen, desired), tuple(_news(graph, seen, desired, writes)))


def _after(first: Sequence[Intent], write: Intent) -> Intent:
    """What has pods comes after what its pods name."""
    made = tuple(each.id for each in first if isinstance(each, Create | Patch))
    return replace(write, after=made) if isinstance(write, Create) else write


def _missing_claims(graph: Graph, seen: Seen) -> list[str]:
    return [
        f"spec.pvcs[{index}]: PersistentVolumeClaim {claim.name} does not exist: make it, or set create"
        for index, claim in enumerate(graph.claims)
        if not claim.create and ("PersistentVolumeClaim", claim.name) not in seen.children
    ]


def _stamp(graph: Graph) -> list[Intent]:
    """Which backend runs it is written down before anything else is."""
    if keys.PROVIDER in graph.own_annotations:
        return []
    about = Target(_KIND.api_version, _KIND.name, graph.name, graph.namespace)
    chosen = {keys.PROVIDER: provider(graph.own_annotations)}
    return [Patch(about, {"metadata": {"uid": graph.uid, "annotations": chosen}})]


def _companions(graph: Graph, seen: Seen) -> list[Intent]:
    found: list[Intent | None] = []
    for body in companions.owned(graph):
        present = seen.children.get((body["kind"], body["metadata"]["name"]))
        # A claim may be anybody's, and is used as it is.
        shared = body["kind"] == "PersistentVolumeClaim"
        found.append(objects.brought(objects.owned(graph, body), present, shared=shared))
    for body in companions.shared(graph):
        present = seen.children.get((body["kind"], body["metadata"]["name"]))
        found.append(objects.brought(body, present, shared=True))
    if seen.ssh_key is not None:
        secret = companions.ssh_secret(graph, *seen.ssh_key)
        found.append(Create(objects.target(secret), secret, may_exist=True, unseen=True))
    return [each for each in found if each is not None]


def _status(graph: Graph, seen: Seen, backend: Backend, now: float) -> GraphStatus:
    standings = {each.name: backend.standing(graph, each, seen) for each in graph.components}
    ready = _ready(standings) if not seen.trouble else _trouble(seen.trouble)
    conditions = [ready, *backend.conditions(graph, seen)]
    state = "successful" if ready.status == "True" else "failed" if seen.trouble else "pending"
    return GraphStatus(
        observed_generation=seen.stored.status.observed_generation,
        state=state,
        conditions=_settled(seen, conditions, now),
        components={name: each.status for name, each in standings.items() if each.status is not None},
        restart=backend.restart(graph, seen),
        applied_topology_constraints=backend.applied(graph, seen),
    )


def _ready(standings: Mapping[str, Standing]) -> Condition:
    behind = {name: each for name, each in standings.items() if each.why}
    if not behind:
        return fact(READY, True, "all_resources_are_ready", "All components are ready")
    reasons = {each.why for each in behind.values()}
    why = reasons.pop() if len(reasons) == 1 else "mixed_not_ready_reasons"
    return fact(READY, False, why, "; ".join(f"{name}: {each.words}" for name, each in behind.items()))


def _trouble(words: str) -> Condition:
    return fact(READY, False, "failed_to_reconcile_the_resources", words)


def _refused(seen: Seen, wrong: list[str], now: float) -> GraphPlan:
    """It cannot be acted on: what runs goes on running, and the status says why nothing changes."""
    unsupported = [each for each in wrong if ": Forbidden: not supported" in each]
    extra = [fact(UNSUPPORTED, True, "NotSupported", "; ".join(unsupported))] if unsupported else []
    stranded = any(NOBODY_SPANS in each for each in wrong)
    reason = "no_multinode_orchestrator_available" if stranded else "failed_to_reconcile_the_resources"
    return _failed(seen, reason, "; ".join(wrong), now, extra)


def _failed(seen: Seen, reason: str, words: str, now: float, extra: Sequence[Condition] = ()) -> GraphPlan:
    known = seen.stored.status
    kept = tuple(each for each in known.conditions if each.type != UNSUPPORTED or extra)
    conditions = settle(kept, [fact(READY, False, reason, words), *extra], now)
    desired = replace(known, state="failed", conditions=conditions)
    return GraphPlan((), _draft(seen, desired), tuple(_failure(seen, desired)))


def _failure(seen: Seen, desired: GraphStatus) -> list[Told]:
    """That it failed, if that is news."""
    before, after = find(seen.stored.status.conditions, READY), find(desired.conditions, READY)
    if desired.state != "failed" or after is None:
        return []
    if before is not None and (before.reason, before.message) == (after.reason, after.message):
        return []
    return [Told("ReconcileFailed", after.message, warning=True)]


def _settled(seen: Seen, told: list[Condition], now: float) -> tuple[Condition, ...]:
    """What is told, with dates; what is not told any more goes."""
    types = {each.type for each in told}
    known = tuple(each for each in seen.stored.status.conditions if each.type in types)
    return settle(known, told, now)


def _draft(seen: Seen, desired: GraphStatus) -> Draft:
    meta = seen.stored.metadata
    about = Target(_KIND.api_version, _KIND.name, meta.name, meta.namespace)
    return Draft(about, seen.stored.status, desired, version=meta.resource_version)


def _news(graph: Graph, seen: Seen, desired: GraphStatus, writes: tuple[Intent, ...]) -> list[Told]:
    told = []
    made = any(isinstance(each, Create) and each.target.kind == "PodCliqueSet" for each in writes)
    if made and graph.constrained:
        domains = ", ".join(_constraints(graph))
        told.append(Told("TopologyConstraintsApplied", f"Constrained: {domains}", of_status=False))
    for component, count in scaling.moves(graph, seen):
        note = f"{component.name} goes from {component.replicas} to {count} replicas"
        adapter = f"{ScalingAdapter.KIND.name} {naming.child(graph, component)}"
        told.append(Told("Scaled", f"{note}, as {adapter} says", of_status=False))
    told += _failure(seen, desired)
    before, after = find(seen.stored.status.conditions, LEVELS), find(desired.conditions, LEVELS)
    bad = after is not None and after.status != "True" and after.reason != _PENDING
    if after is not None and bad and (before is None or before.reason != after.reason):
        told.append(Told(after.reason, after.message, warning=True))
    return told


def _constraints(graph: Graph) -> list[str]:
    whole = [f"the deployment to {graph.topology.domain}"] if graph.topology.domain else []
    return whole + [f"{each.name} to {each.domain}" for each in graph.components if each.domain]
