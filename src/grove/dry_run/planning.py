"""Plans the objects of an input one after another on one cluster in memory: each sees what the earlier ones
take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from msgspec.structs import replace

from grove import timing
from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.naming.well_known import SET_FINALIZER
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import ClusterState
from grove.cluster_state.operator_setup import OperatorSetup
from grove.dry_run.admission import Admitted, admit_by_rules
from grove.dry_run.documents import Document
from grove.dry_run.gang_report import planned_gang
from grove.dry_run.graph_run import rendered_set
from grove.dry_run.model import (
    ObjectCount,
    PlannedGang,
    PlanReport,
    Verdict,
    WorkloadPlan,
    worst,
)
from grove.dry_run.operator import DryOperator
from grove.dry_run.set_run import SetOutcome, SetRun, object_counts
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube.client.resource import NODES, PODS
from grove.operator.keys import SetKey
from grove.plan.placement.assignment import GangName

Body = dict[str, Any]
ServerAdmission = Callable[[Document, Body | None], Awaitable[Admitted | None]]
"""Asks the API server; None if it gives no verdict."""


class Planner:
    """Plans documents on the state of a cluster. Must be used in a running event loop."""

    def __init__(
        self,
        state: ClusterState,
        setup: OperatorSetup,
        now: float,
        ask_server: ServerAdmission | None = None,
    ) -> None:
        self._state, self._setup, self._ask_server = state, setup, ask_server
        self.operator = DryOperator(state, setup, now)
        self.operator.observe_existing()
        self.operator.run_rounds()

    async def plan(self, documents: list[Document], *, largest: bool = False) -> PlanReport:
        """The plan of all documents. `largest`: also how many replicas of each set fit now."""
        plans = tuple([await self._plan(document, largest=largest) for document in documents])
        verdict = worst(tuple(each.verdict for each in plans))
        unread = tuple(map(str, self._state.unread))
        return PlanReport(self._state.source, verdict, plans, unread)

    def stored(self, document: Document) -> Body | None:
        """The object of the same name as it is stored."""
        kind = f"{document.kind.api_version}/{document.kind.name}"
        return self.operator.memory.get(kind, document.namespace, document.name)

    async def _plan(self, document: Document, *, largest: bool) -> WorkloadPlan:
        stored = self.stored(document)
        admitted = await self._ask_server(document, stored) if self._ask_server is not None else None
        if admitted is None:
            admitted = admit_by_rules(document, stored, self._setup, self.operator.caches)
        action = "create" if stored is None else "update"
        plan = WorkloadPlan(
            document.kind.name, document.namespace, document.name, action, Verdict.FITS, admitted.verdict
        )
        if not admitted.verdict.allowed:
            return replace(plan, action="rejected", verdict=Verdict.REJECTED)
        body = {**admitted.body, "apiVersion": document.kind.api_version, "kind": document.kind.name}
        if document.kind == PodCliqueSet.KIND:
            plan = self._plan_set(plan, body, stored is not None, largest=largest)
        elif document.kind == DynamoGraphDeployment.KIND:
            plan = await self._plan_graph(plan, body, largest=largest)
        else:
            self.operator.memory.put(body, self.operator.now)
        if plan.action == "update" and not plan.objects and plan.update is None:
            plan = replace(plan, action="unchanged" if _same_spec(stored, body) else "update")
        return plan

    def _plan_set(self, plan: WorkloadPlan, body: Body, existed: bool, *, largest: bool) -> WorkloadPlan:
        most = largest_size(self._state, self._setup, self.operator.now, body) if largest else None
        finalizers = {*body["metadata"].get("finalizers", ()), SET_FINALIZER}
        body = {**body, "metadata": {**body["metadata"], "finalizers": sorted(finalizers)}}
        self.operator.memory.put(body, self.operator.now)
        run = SetRun(self.operator, SetKey(plan.namespace, body["metadata"]["name"]), existed)
        outcome = run.run()
        gangs = tuple(self._gangs(run))
        return replace(
            plan,
            verdict=self._verdict(gangs, outcome),
            gangs=gangs,
            objects=object_counts(outcome.writes),
            update=outcome.update,
            fabric_domains=outcome.domains,
            claims=_claims(object_counts(outcome.writes)),
            errors=tuple(each.message for each in outcome.errors),
            notes=tuple(self._notes(run)),
            max_replicas=most,
        )

    async def _plan_graph(self, plan: WorkloadPlan, body: Body, *, largest: bool) -> WorkloadPlan:
        rendered = await rendered_set(self.operator, self._setup, plan.namespace, plan.name, body)
        if rendered.body is None:
            return replace(plan, verdict=Verdict.UNKNOWN, errors=rendered.errors, objects=rendered.objects)
        planned = self._plan_set(plan, rendered.body, rendered.existed, largest=largest)
        return replace(planned, objects=_merged(rendered.objects, planned.objects))

    def _gangs(self, run: SetRun) -> Iterator[PlannedGang]:
        operator = self.operator
        for key, gang in run.gangs():
            found = operator.decided.get(GangName(key.namespace, gang.name))
            if found is not None:
                capacity = operator.placement.capacity
                yield planned_gang(capacity, found.demand, found.decision, gang.base_gang)
                continue
            pods = sum(clique.replicas for clique in gang.cliques)
            if operator.is_bound(key, gang):
                continue
            waits = f"waits for base gang {gang.base_gang}" if gang.base_gang else "asks for no nodes yet"
            yield PlannedGang(gang.name, pods, False, gang.base_gang, message=waits)

    def _verdict(self, gangs: tuple[PlannedGang, ...], outcome: SetOutcome) -> Verdict:
        if any(each.refused for each in gangs):
            return Verdict.DOES_NOT_FIT
        needed = [self._state.kind(each) for each in (NODES, PODS)]
        known = all(each.listed and not each.namespace for each in needed)
        placed = all(each.placed for each in gangs)
        if placed and known and not outcome.errors:
            return Verdict.FITS
        return Verdict.UNKNOWN

    def _notes(self, run: SetRun) -> Iterator[str]:
        for name in run.schedulers():
            if name not in ("", DEFAULT_SCHEDULER):
                yield f"{name} chooses the nodes itself: this is what the solver of grove finds"


_SET = f"{PodCliqueSet.KIND.api_version}/{PodCliqueSet.KIND.name}"


def largest_size(state: ClusterState, setup: OperatorSetup, now: float, body: Body) -> int:
    """How many replicas of a set fit now, up to a limit. Twice as many are tried until one does not fit:
    replicas are equal, so it does not matter which ones."""
    operator = DryOperator(state, setup, now)
    operator.observe_existing(SetKey(body["metadata"]["namespace"], body["metadata"]["name"]))
    existed = operator.memory.get(_SET, body["metadata"]["namespace"], body["metadata"]["name"]) is not None
    size = fitting = 1
    while fitting == size and size < timing.PLANNED_REPLICAS:
        size = min(2 * size, timing.PLANNED_REPLICAS)
        operator.memory.put({**body, "spec": {**body["spec"], "replicas": size}}, operator.now)
        run = SetRun(operator, SetKey(body["metadata"]["namespace"], body["metadata"]["name"]), existed)
        run.run()
        fitting = run.placed_replicas()
    return fitting


def _same_spec(stored: Body | None, body: Body) -> bool:
    return stored is not None and stored.get("spec") == body.get("spec")


def _claims(objects: tuple[ObjectCount, ...]) -> tuple[str, ...]:
    return tuple(name for each in objects if each.kind == "ResourceClaim" for name in each.created)


def _merged(first: tuple[ObjectCount, ...], then: tuple[ObjectCount, ...]) -> tuple[ObjectCount, ...]:
    kinds = {each.kind for each in then}
    return (*(each for each in first if each.kind not in kinds), *then)
