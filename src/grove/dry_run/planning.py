"""Plans the objects of an input one after another on one cluster in memory: each sees what the earlier ones
take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from grove import timing
from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.formats.name_list import name_list
from grove.api.naming.well_known import SET_FINALIZER
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetSpec
from grove.cluster_state.kinds import GRAPHS
from grove.cluster_state.model import ClusterState, unread_lines
from grove.cluster_state.operator_setup import OperatorSetup
from grove.cluster_state.redaction import without_values
from grove.dry_run.admission import Admitted, admit_by_rules, priority_classes
from grove.dry_run.documents import Document, InputError
from grove.dry_run.gang_report import planned_gang
from grove.dry_run.graph_run import rendered_set
from grove.dry_run.memory_cluster import AppliedWrite
from grove.dry_run.model import (
    PlannedGang,
    PlanReport,
    Verdict,
    WorkloadPlan,
    worst,
)
from grove.dry_run.operator import DryOperator
from grove.dry_run.set_run import SetOutcome, SetRun, object_counts
from grove.dry_run.topologies import named_topologies
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.conversion.objects import converted
from grove.kube.client.resource import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEASES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from grove.operator.caches.resources import resource_of
from grove.operator.keys import SetKey
from grove.plan.placement.assignment import GangName
from grove.topology.constraints import topology_name_of

Body = dict[str, Any]
ServerAdmission = Callable[[Document, Body | None], Awaitable[Admitted | None]]
"""Asks the API server; None if it gives no verdict."""

_WITHOUT_ROOM = frozenset(
    {
        GRAPHS, HORIZONTAL_POD_AUTOSCALERS, LEASES, ROLES, ROLE_BINDINGS, SECRETS, SERVICES, SERVICE_ACCOUNTS,
    }
)  # fmt: skip
"""Kinds whose objects use no room, and have none: whether something fits does not depend on them."""


class Planner:
    """Plans documents on the state of a cluster. Must be used in a running event loop."""

    def __init__(
        self,
        state: ClusterState,
        setup: OperatorSetup,
        now: float,
        ask_server: ServerAdmission | None = None,
        *,
        redacted: bool = False,
    ) -> None:
        """`redacted`: the state is that of a snapshot file, which has no values of environment variables;
        those of documents are removed, too."""
        self._state, self._setup, self._started_at, self._ask_server = state, setup, now, ask_server
        self._redacted = redacted
        self._topologies: list[Body] = []
        """The topologies of the input so far."""
        self._changed_topologies: set[str] = set()
        """The names of those that the cluster does not have like that."""
        self._sets: list[tuple[Body, bool]] = []
        """Its sets so far, and whether they existed."""
        self.operator = self._new_operator(self._topologies_in_use())
        self._existing = self.operator.decide_existing()

    async def plan(self, documents: list[Document], *, largest: bool = False) -> PlanReport:
        """The plan of all documents. `largest`: also how many replicas of each set fit now."""
        if self._redacted:
            documents = [Document(each.kind, without_values(each.body)) for each in documents]
        plans = tuple([await self._plan(document, largest=largest) for document in documents])
        verdict = worst(tuple(each.verdict for each in plans))
        unread = unread_lines((*self.operator.state.unread, *self.operator.unplanned_sets()))
        return PlanReport(self._state.source, verdict, plans, unread)

    def _new_operator(self, topologies: Iterable[str] = ()) -> DryOperator:
        """An operator that knows what exists, and has placed gangs with these topologies."""
        operator = DryOperator(self._state, self._setup, self._started_at, redacted=self._redacted)
        for body in self._topologies:
            operator.memory.put(body, operator.now)
        operator.use_topologies(topologies)
        return operator

    def _second_operator(self) -> DryOperator:
        """Another operator like the first was before anything of the input was planned."""
        operator = self._new_operator(self._topologies_in_use())
        if self._changed_topologies:
            operator.decide_existing()
        else:
            operator.take_over(self._existing)
        return operator

    def _other_operator(self) -> DryOperator:
        """An operator that has placed other gangs before, so that it may prefer other nodes. What waits is
        decided on again, unless that takes too long."""
        operator = self._new_operator(self._other_topologies())
        if self._changed_topologies or self._work(self._existing.pods) <= timing.SPREAD_WORK:
            operator.decide_existing()
        else:
            operator.take_over(self._existing)
        return operator

    def _work(self, pods: int) -> int:
        """How long it takes to place pods."""
        return pods * len(self._state.kind(NODES).items)

    def _topologies_in_use(self) -> list[str]:
        """The topologies that sets of the cluster name: a running operator has placed gangs with them."""
        sets = self._state.objects(resource_of(PodCliqueSet.KIND), PodCliqueSet)
        return sorted({topology_name_of(each.spec.template) for each in sets} - {""})

    def _other_topologies(self) -> list[str]:
        """Those that it may have placed gangs with before."""
        found = (*self.operator.caches.topologies, *self.operator.caches.topology_bindings)
        return [] if self._topologies_in_use() else [each.metadata.name for each in found][:1]

    def _stored(self, document: Document) -> Body | None:
        """The stored object, in the version of the document: the API server converts it as well."""
        kind = f"{document.kind.api_version}/{document.kind.name}"
        found = self.operator.memory.get(kind, document.namespace, document.name)
        if found is None or document.kind != DynamoGraphDeployment.KIND:
            return found
        return converted(found, document.version)

    def _changed_for(self, document: Document) -> set[str]:
        """The changed topologies that the verdict on a workload depends on. A graph that names none may use
        any."""
        named = set(named_topologies(document)) if document.kind.namespaced else set()
        if document.kind == DynamoGraphDeployment.KIND and not named:
            return self._changed_topologies
        return self._changed_topologies & named

    async def _plan(self, document: Document, *, largest: bool) -> WorkloadPlan:
        stored = self._stored(document)
        admitted = None
        changed = self._changed_for(document)
        if self._ask_server is not None and not changed:
            admitted = await self._ask_server(document, stored)
        if admitted is None:
            admitted = admit_by_rules(document, stored, self._setup, self.operator.caches)
        action = "create" if stored is None else "update"
        plan = WorkloadPlan(
            document.kind.name, document.namespace, document.name, action, Verdict.FITS, admitted.verdict
        )
        if self._ask_server is not None and changed:
            unknown = f"the API server does not know {name_list(sorted(changed))} of this input yet"
            plan = replace(plan, notes=(f"{unknown}: it is not asked",))
        if not admitted.verdict.allowed:
            if not admitted.verdict.known:
                return replace(plan, verdict=Verdict.UNKNOWN)
            return replace(plan, action="rejected", verdict=Verdict.REJECTED)
        body = {**admitted.body, "apiVersion": document.kind.api_version, "kind": document.kind.name}
        try:
            plan = await self._planned(plan, document, body, stored, largest=largest)
        except (ValueError, msgspec.MsgspecError) as error:  # what the API server admits may still be wrong
            where = f"{document.namespace}/{document.name}" if document.namespace else document.name
            raise InputError(
                f"{document.kind.name} {where} cannot be planned ({error}): correct its spec"
            ) from None
        if not plan.objects and plan.update is None and _same_spec(stored, body):
            return replace(plan, action="unchanged")
        return plan

    async def _planned(
        self, plan: WorkloadPlan, document: Document, body: Body, stored: Body | None, *, largest: bool
    ) -> WorkloadPlan:
        if document.kind == PodCliqueSet.KIND:
            return self._plan_set(plan, body, stored is not None, largest=largest)
        if document.kind == DynamoGraphDeployment.KIND:
            return await self._plan_graph(plan, body, largest=largest)
        self._topologies.append(body)
        if not _same_spec(stored, body):
            self._changed_topologies.add(document.name)
        self.operator.memory.put(body, self.operator.now)
        return plan

    def _plan_set(
        self,
        plan: WorkloadPlan,
        body: Body,
        existed: bool,
        *,
        largest: bool,
        earlier: tuple[AppliedWrite, ...] = (),
    ) -> WorkloadPlan:
        """The plan of a set. `earlier`: what is written for the graph that it is rendered from."""
        finalizers = {*body["metadata"].get("finalizers", ()), SET_FINALIZER}
        body = {**body, "metadata": {**body["metadata"], "finalizers": sorted(finalizers)}}
        most = largest_size(self._second_operator(), body, existed) if largest else None
        self.operator.memory.put(body, self.operator.now)
        run = SetRun(self.operator, SetKey(plan.namespace, body["metadata"]["name"]), existed)
        outcome = run.run()
        gangs, objects = tuple(planned_gangs(self.operator, run)), object_counts((*earlier, *outcome.writes))
        if any(gang.base_gang for gang in gangs):
            gangs = self._compared(gangs, body, existed)
        self._sets.append((body, existed))
        return replace(
            plan,
            verdict=self._verdict(gangs, outcome),
            gangs=gangs,
            objects=objects,
            update=outcome.update,
            fabric_domains=outcome.domains,
            claims=tuple(name for each in objects if each.kind == "ResourceClaim" for name in each.created),
            errors=tuple(each.message for each in outcome.errors),
            notes=(*plan.notes, *self._notes(run, body)),
            max_replicas=most,
        )

    def _compared(self, gangs: tuple[PlannedGang, ...], body: Body, existed: bool) -> tuple[PlannedGang, ...]:
        """The gangs, marked where the answer depends on the nodes that earlier ones get. In a second run the
        scheduler spreads pods wherever it may, and the operator has placed other gangs before."""
        if self._work(sum(gang.pods for gang in gangs)) > timing.SPREAD_WORK:
            return gangs
        operator = self._other_operator()
        for each, is_stored in (*self._sets, (body, existed)):
            operator.memory.put(each, operator.now)
            key = SetKey(each["metadata"]["namespace"], each["metadata"]["name"])
            run = SetRun(operator, key, is_stored, operator.least_used_node)
            run.run()
        others = {gang.name: gang for gang in planned_gangs(operator, run)}
        return tuple(replace(gang, depends=_differs(gang, others.get(gang.name))) for gang in gangs)

    async def _plan_graph(self, plan: WorkloadPlan, body: Body, *, largest: bool) -> WorkloadPlan:
        rendered = await rendered_set(
            self.operator, self._setup, plan.namespace, plan.name, body, redacted=self._redacted
        )
        writes = rendered.writes
        if rendered.body is None:
            errors, objects = rendered.errors, object_counts(writes)
            return replace(plan, verdict=Verdict.UNKNOWN, errors=errors, objects=objects)
        return self._plan_set(plan, rendered.body, rendered.existed, largest=largest, earlier=writes)

    def _verdict(self, gangs: tuple[PlannedGang, ...], outcome: SetOutcome) -> Verdict:
        state = self.operator.state
        skipped = {each.resource for each in state.kinds.values() if each.undecodable} - _WITHOUT_ROOM
        if any(each.refused and not each.depends for each in gangs):
            # Objects of namespaces take room. Nodes, devices and topologies that are not seen may have some.
            return Verdict.DOES_NOT_FIT if all(each.namespaced for each in skipped) else Verdict.UNKNOWN
        needed = [state.kind(each) for each in (NODES, PODS)]
        known = not skipped and all(each.listed and not each.namespace for each in needed)
        placed = all(each.placed and not each.depends for each in gangs)
        return Verdict.FITS if placed and known and not outcome.errors else Verdict.UNKNOWN

    def _notes(self, run: SetRun, body: Body) -> Iterator[str]:
        for name in run.schedulers():
            if name not in ("", DEFAULT_SCHEDULER):
                yield f"{name} chooses the nodes itself: this is what the solver of grove finds"
        if not self.operator.caches.priority_classes.synced.is_set():
            for name in priority_classes(body):
                yield f"PriorityClass {name} is not known here: planned with priority 0"


def planned_gangs(operator: DryOperator, run: SetRun) -> Iterator[PlannedGang]:
    """The gangs of a set that are not bound already."""
    for key, gang in run.gangs():
        found = operator.decided.get(GangName(key.namespace, gang.name))
        if found is not None:
            capacity = operator.placement.capacity
            members = operator.placement.domain_nodes(found.demand)
            yield planned_gang(capacity, found.demand, found.decision, gang.base_gang, members)
        elif not operator.is_bound(key, gang):
            pods = sum(clique.replicas for clique in gang.cliques)
            waits = f"waits for base gang {gang.base_gang}" if gang.base_gang else "asks for no nodes yet"
            yield PlannedGang(gang.name, pods, False, gang.base_gang, message=waits)


def _differs(gang: PlannedGang, other: PlannedGang | None) -> bool:
    """Whether a gang is placed in one of two runs only, or in other domains of its required levels."""
    if other is None or gang.placed != other.placed or gang.unplaced != other.unplaced:
        return True
    required, others = (
        {unit.name: unit.domain for unit in each.units if unit.required} for each in (gang, other)
    )
    return required != others


def largest_size(operator: DryOperator, body: Body, existed: bool) -> int:
    """How many replicas of a set fit now, up to a limit. Twice as many are tried until one does not fit:
    replicas are equal, so it does not matter which ones."""
    key = SetKey(body["metadata"]["namespace"], body["metadata"]["name"])
    size = fitting = 1
    while fitting == size and size < timing.PLANNED_REPLICAS:
        size = min(2 * size, timing.PLANNED_REPLICAS)
        operator.memory.put({**body, "spec": {**body["spec"], "replicas": size}}, operator.now)
        run = SetRun(operator, key, existed)
        run.run()
        fitting = run.placed_replicas()
    return fitting


def _same_spec(stored: Body | None, body: Body) -> bool:
    """Whether two objects ask for the same. Defaults that only one of them has do not count."""
    if stored is None:
        return False
    if body["kind"] != PodCliqueSet.KIND.name:
        return bool(stored.get("spec") == body.get("spec"))
    before, after = (
        msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(each["spec"]), type=PodCliqueSetSpec))
        for each in (stored, body)
    )
    return bool(msgspec.json.decode(before) == msgspec.json.decode(after))
