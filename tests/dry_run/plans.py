"""Plans of sets on described clusters, for tests."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import ClusterState
from grove.cluster_state.operator_setup import operator_setup
from grove.dry_run.documents import Document
from grove.dry_run.model import PlanReport, Verdict, WorkloadPlan
from grove.dry_run.operator import DryOperator
from grove.dry_run.planning import Planner
from grove.dry_run.set_run import SetRun
from grove.operator.keys import SetKey
from grove.rules.podcliqueset.defaults import default_set
from tests.dry_run.random_workloads import Body

NOW = 1_800_000_000.0
SETUP = operator_setup()


def with_gpus(body: Body, amount: int) -> Body:
    """The set with this many GPUs for each pod."""
    for clique in body["spec"]["template"]["cliques"]:
        container = clique["spec"]["podSpec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": str(amount)}}
    return body


def report(state: ClusterState, *bodies: Body, largest: bool = False) -> PlanReport:
    async def run() -> PlanReport:
        planner = Planner(state, SETUP, NOW)
        return await planner.plan([Document(PodCliqueSet.KIND, each) for each in bodies], largest=largest)

    return asyncio.run(run())


def plan(state: ClusterState, body: Body, **options: bool) -> WorkloadPlan:
    return report(state, body, **options).plans[0]


def applied(state: ClusterState, body: Body) -> ClusterState:
    """The state of the cluster once a set is applied, and its pods run."""

    async def run() -> ClusterState:
        operator = DryOperator(state, SETUP, NOW - 3600)
        meta = operator.memory.put(default_set(body), operator.now)["metadata"]
        assert SetRun(operator, SetKey(meta["namespace"], meta["name"]), existed=True).run().update is None
        return _state_of(operator, state)

    return asyncio.run(run())


def documents_report(state: ClusterState, documents: list[Document], *, redacted: bool = False) -> PlanReport:
    """The plan of documents of any kind."""

    async def run() -> PlanReport:
        return await Planner(state, SETUP, NOW, redacted=redacted).plan(documents)

    return asyncio.run(run())


def applied_graph(state: ClusterState, graph: Document) -> ClusterState:
    """The state of the cluster once a graph is applied. Its set must have gangs that wait for others: the
    pods of such a set are followed until they run."""

    async def run() -> ClusterState:
        planner = Planner(state, SETUP, NOW - 3600)
        assert (await planner.plan([graph])).verdict is Verdict.FITS
        return _state_of(planner.operator, state)

    return asyncio.run(run())


def _state_of(operator: DryOperator, state: ClusterState) -> ClusterState:
    kinds = dict(state.kinds)
    for resource in kinds:
        bodies = operator.memory.objects(resource)
        if bodies:
            items = tuple(Raw(msgspec.json.encode(_stored(each))) for each in bodies)
            kinds[resource] = replace(kinds[resource], items=items)
    return replace(state, kinds=kinds)


def _stored(body: Body) -> Body:
    """An object of a cluster: its version is older than all that are planned."""
    return {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
