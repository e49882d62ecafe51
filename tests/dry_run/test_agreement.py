"""A plan is what rounds of placement decide for the demands that the plans of the replicas report."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from grove.api.types.clustertopology import ClusterTopology
from grove.api.types.kubernetes_objects import Node
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.kinds import TOPOLOGIES
from grove.cluster_state.model import ClusterState
from grove.cluster_state.operator_setup import operator_setup
from grove.dry_run.documents import Document
from grove.dry_run.gang_report import planned_gang, unit_domains
from grove.dry_run.model import PlannedGang, PlanReport, Verdict
from grove.dry_run.operator import DryOperator
from grove.dry_run.planning import Planner
from grove.kube.client.resource import NODES, PODS
from grove.plan.placement.assignment import Assignment, GangName, Placements
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang
from grove.plan.replica import plan_replica
from grove.plan.snapshot import Snapshot
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.kube import Kube
from grove.schedulers.registry import backends
from grove.topology.constraints import read, topology_name_of
from grove.topology.placement import model
from grove.topology.placement.needs.requests import amounts
from tests.cluster_state.states import shaped, with_objects
from tests.dry_run.random_workloads import Body, foreign_pod, random_set, random_use
from tests.fuzzing import budget
from tests.plan.builders import read_set

NOW = 1_800_000_000.0
GPU = "nvidia.com/gpu"
SETUP = operator_setup()
SHAPES = ("1x1x2x2", "1x2x2x2", "2x1x2x3", "1x1x3x4")
PLACING = backends(SETUP.configuration.scheduler).by_name["default-scheduler"]


class EveryGang(Kube):
    def places(self, request: object) -> bool:
        return True


Decided = tuple[bool, dict[str, model.Domain]]
"""Whether a gang has a place, and the domains of its units."""


def decided(
    state: ClusterState, use: dict[str, int], body: Body
) -> dict[str, tuple[bool, dict[str, model.Domain]]]:
    """What one round decides, from nodes, use and demands that are put together here."""
    capacity = ClusterCapacity()
    nodes = {each.metadata.name: observed(each, use) for each in state.objects(NODES, Node)}
    topology = next(state.objects(TOPOLOGIES, ClusterTopology))
    workload = read_set(default_set(body))
    named = topology_name_of(workload.spec.template)
    demands = []
    for index in range(workload.spec.replicas):
        snapshot = Snapshot(
            workload,
            index,
            placements=Placements(node_labels={}),
            topology=read(named, topology.spec if named else None),
            scheduler=EveryGang(placement=PLACING.placement),
        )
        demands += plan_replica(snapshot, NOW).placement_demands
    gangs = [ObservedGang(GangState(each)) for each in demands]
    result = run_round(capacity, ClusterChanges(nodes, gangs), NOW)
    found = {}
    for demand in demands:
        decision = result.changed[demand.gang].decision
        placed = isinstance(decision, Assignment)
        domains = unit_domains(capacity.index(demand.levels), demand, decision.nodes) if placed else {}
        found[demand.gang.name] = (placed, domains)
    return found


def observed(node: Node, use: dict[str, int]) -> ObservedNode:
    read_node = model.Node(node.metadata.name, node.metadata.labels, amounts(node.status.allocatable))
    gpus = use.get(node.metadata.name, 0)
    return ObservedNode(read_node, {0: {GPU: gpus, model.PODS: 1}} if gpus else {})


def planned(state: ClusterState, body: Body) -> tuple[PlanReport, DryOperator]:
    async def plan() -> tuple[PlanReport, DryOperator]:
        planner = Planner(state, SETUP, NOW)
        return await planner.plan([Document(PodCliqueSet.KIND, body)]), planner.operator

    return asyncio.run(plan())


def as_decided(gang: PlannedGang) -> Decided:
    return gang.placed, {unit.name: unit.domain for unit in gang.units}


def is_decided_once(operator: DryOperator, gang: str) -> bool:
    """Whether a gang has kept its nodes: it is decided again if more of its pods find a place."""
    name = GangName("ns", gang)
    return operator.first_decided[name].decision.nodes == operator.decided[name].decision.nodes


@budget(200)
@given(st.integers(0, 2**32))
def test_plan_is_what_a_round_decides(seed: int) -> None:
    random = Random(seed)
    state = shaped(random.choice(SHAPES), 8, "local")
    names = [msgspec.json.decode(item)["metadata"]["name"] for item in state.kind(NODES).items]
    use = dict(random_use(random, names))
    pods = (foreign_pod(f"p{number}", node, gpus) for number, (node, gpus) in enumerate(use.items()))
    body = random_set(random, "wl")
    expected = decided(state, use, body)
    report, operator = planned(with_objects(state, PODS, *pods), body)
    (plan,) = report.plans
    assert plan.admission.allowed, plan.admission.message
    capacity = operator.placement.capacity
    first = {
        name.name: as_decided(planned_gang(capacity, each.demand, each.decision))
        for name, each in operator.first_decided.items()
    }
    assert {name: each for name, each in first.items() if name in expected} == expected
    reported = {gang.name: as_decided(gang) for gang in plan.gangs if not gang.base_gang}
    assert reported.keys() == expected.keys()
    for name, each in reported.items():
        assert each == expected[name] or not is_decided_once(operator, name)
    if any(gang.depends for gang in plan.gangs):
        assert report.verdict is not Verdict.FITS
        return
    refused = any(not placed for placed, _ in expected.values()) or any(gang.refused for gang in plan.gangs)
    assert report.verdict is (Verdict.DOES_NOT_FIT if refused else Verdict.FITS)
