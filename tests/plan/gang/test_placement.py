"""What the plan of a replica asks of placement, and what it applies of its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.configuration.default_scheduler import DefaultSchedulerConfig, PlacementMode
from grove.api.intents import Patch
from grove.api.naming import annotations as keys
from grove.api.naming.well_known import GANG_GATE, HOSTNAME
from grove.plan.model import Plan
from grove.plan.placement.assignment import Assignment, Decision, Placements, PodSlot, Waiting, recorded
from grove.plan.replica import plan_replica
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import PodGroups, V1Alpha2, V1Beta1
from grove.topology.constraints import ResolvedTopology
from tests.plan.builders import a_clique, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator
from tests.plan.simulator.updates import change, deployed

A, B = PodSlot("wl-0-a", 0), PodSlot("wl-0-b", 0)
NODES = {A: "n1", B: "n2"}
RACK_1 = Assignment(pins={"wl-0-a": {"rack": "r1"}}, nodes=NODES)


def a_simulator(mode: PlacementMode = PlacementMode.ALL, **pod_spec: Any) -> Simulator:
    body = a_set("a:1 b:1")
    body["spec"]["template"]["cliques"][0] = a_clique("a:1", nodeSelector={"gpu": "yes"}, **pod_spec)
    sim = Simulator(body)
    sim.scheduler = Kube(placement=DefaultSchedulerConfig(placement=mode).placement_settings)
    return sim


def planned(
    sim: Simulator,
    decision: Decision | None = None,
    problem: str = "",
    delay: str = "",
    late: bool = False,
) -> Plan:
    decisions = {"wl-0": decision} if decision is not None else {}
    topology = ResolvedTopology("t", {"rack": "rack"}, found=True)
    placements = Placements(decisions, problem, delay=delay, late=late)
    return plan_replica(replace(sim.snapshot(), placements=placements, topology=topology), sim.now)


def pod_specs(sim: Simulator) -> dict[str, Any]:
    return {name.rpartition("-")[0]: sim.api.get("Pod", name)["spec"] for name in sim.pods()}


def gates(spec: dict[str, Any]) -> list[str]:
    return [gate["name"] for gate in spec.get("schedulingGates") or ()]


def writes(plan: Plan) -> list[str]:
    return sorted(" ".join(intent.id.split()[:2]) for intent in plan.intents)


def nominations(plan: Plan) -> dict[str, str]:
    found = [each for each in plan.intents if isinstance(each, Patch) and each.subresource == "status"]
    return {
        each.target.name.rpartition("-")[0]: each.body["status"]["nominatedNodeName"]
        for each in found
        if each.target.kind == "Pod"
    }


def test_new_replica_is_not_written_before_the_decision() -> None:
    sim = a_simulator()
    plan = planned(sim)
    (demand,) = plan.placement_demands
    assert demand.gang == ("ns", "wl-0")
    assert {pod.slot for pod in demand.unbound} == {A, B}
    assert plan.intents == ()
    assert plan.report is None, "the set would count the replica as created, and confirm each create"


@pytest.mark.parametrize("decision", [RACK_1, replace(RACK_1, nominated=True), Waiting("full")])
def test_new_replica_is_written_in_one_pass(decision: Decision) -> None:
    sim = a_simulator()
    plan = planned(sim, decision)
    assert not plan.events
    assert not any(each.startswith("patch PodCliqueSet") for each in writes(plan))
    sim.execute(plan)
    assert planned(sim, decision).intents == ()


def test_new_gang_is_not_written_before_the_decision() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    sim.api.delete("PodGang", "wl-0")
    for name in sim.pods():
        sim.api.delete("Pod", name)
    plan = planned(sim)
    assert "create PodGang" not in writes(plan)
    assert "create Pod" not in writes(plan)


def test_gang_with_slack_is_created_pinned_and_ungated() -> None:
    sim = a_simulator()
    plan = planned(sim, RACK_1)
    sim.execute(plan)
    specs = pod_specs(sim)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}
    assert "nodeSelector" not in specs["wl-0-b"]
    assert recorded(sim.api.get("PodGang", "wl-0")["metadata"]["annotations"], 0).pins == RACK_1.pins
    assert nominations(plan) == {}


def test_preferred_labels_are_node_affinity() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, replace(RACK_1, near={"wl-0-b": {"rack": "r2"}})))
    affinity = pod_specs(sim)["wl-0-b"]["affinity"]["nodeAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchExpressions"] == [{"key": "rack", "operator": "In", "values": ["r2"]}]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
IN_TOPOLOGY = replace(RACK_1, present={"wl-0-a": ("rack", "host")})
OWN_TERMS = [{"matchExpressions": [{"key": "gen", "operator": "In", "values": ["5"]}]}, {}]
EXISTS = {"key": "host", "operator": "Exists"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], [{"matchExpressions": [EXISTS]}]),
        (OWN_TERMS, [{"matchExpressions": [*OWN_TERMS[0]["matchExpressions"], EXISTS]}, {}]),
    ],
    ids=["none", "of the user"],
)
@pytest.mark.parametrize("at_release", [False, True])
def test_pods_require_the_labels_of_their_topology(own: Any, expected: Any, at_release: bool) -> None:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}} if own else {}
    sim = a_simulator(affinity=affinity)
    if at_release:
        sim.execute(planned(sim, replace(IN_TOPOLOGY, nominated=True)))
        assert pod_specs(sim)["wl-0-a"]["affinity"] == affinity
        sim.execute(planned(sim, replace(IN_TOPOLOGY, nominated=True, released=True)))
    else:
        sim.execute(planned(sim, IN_TOPOLOGY))
    spec = pod_specs(sim)["wl-0-a"]
    assert spec["affinity"]["nodeAffinity"][REQUIRED] == {"nodeSelectorTerms": expected}
    assert spec["nodeSelector"]["rack"] == "r1"


def test_waiting_gang_is_created_gated_and_says_why() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, Waiting("no rack has room")))
    assert [gates(spec) for spec in pod_specs(sim).values()] == [[GANG_GATE], [GANG_GATE]]
    plan = planned(sim, Waiting("no rack has room"))
    assert plan.intents == ()
    statuses = [each.desired for each in plan.status_updates if each.target.kind == "PodGang"]
    assert any("no rack has room" in each.message for each in statuses[0].conditions)


def test_nominated_gang_is_created_gated_and_nominated_at_once() -> None:
    sim = a_simulator()
    tight = replace(RACK_1, nominated=True)
    sim.execute(planned(sim, tight))
    assert {
        name.rpartition("-")[0]: sim.api.get("Pod", name)["status"]["nominatedNodeName"]
        for name in sim.pods()
    } == {"wl-0-a": "n1", "wl-0-b": "n2"}
    assert all(map(gates, pod_specs(sim).values()))
    assert "rack" not in pod_specs(sim)["wl-0-a"]["nodeSelector"], "a pin of a gated pod could not be changed"
    assert planned(sim, tight).intents == ()
    moved = replace(tight, nodes={A: "n3", B: "n2"})
    assert nominations(planned(sim, moved)) == {"wl-0-a": "n3"}


def test_release_pins_and_removes_the_gate_in_one_write() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, replace(RACK_1, nominated=True)))
    plan = planned(sim, replace(RACK_1, nominated=True, released=True))
    assert writes(plan) == ["patch Pod", "patch Pod"]
    sim.execute(plan)
    specs = pod_specs(sim)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}


def test_pod_that_preempts_is_pinned_to_its_host() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, replace(RACK_1, nominated=True)))
    sim.execute(planned(sim, replace(RACK_1, nominated=True, released=True, hosts={A: "h1"})))
    specs = pod_specs(sim)
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1", HOSTNAME: "h1"}
    assert "nodeSelector" not in specs["wl-0-b"]


def test_pods_that_preempt_are_released_first() -> None:
    sim = a_simulator()
    nominated = replace(RACK_1, nominated=True)
    sim.execute(planned(sim, nominated))
    first = replace(nominated, released=True, hosts={A: "h1"}, preempting=True)
    sim.execute(planned(sim, first))
    assert {name: bool(gates(spec)) for name, spec in pod_specs(sim).items()} == {
        "wl-0-a": False,
        "wl-0-b": True,
    }
    assert planned(sim, first).intents == (), "the other one stays nominated"
    sim.execute(planned(sim, replace(first, preempting=False)))
    assert not any(map(gates, pod_specs(sim).values()))


def test_pod_that_preempts_is_created_again_on_its_host() -> None:
    sim = a_simulator()
    nominated = replace(RACK_1, nominated=True)
    sim.execute(planned(sim, nominated))
    first = replace(nominated, released=True, hosts={A: "h1"}, preempting=True)
    sim.execute(planned(sim, first))
    for name in sim.pods():
        sim.api.delete("Pod", name)
    plan = planned(sim, first)
    assert nominations(plan) == {"wl-0-b": "n2"}
    sim.execute(plan)
    specs = pod_specs(sim)
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1", HOSTNAME: "h1"}
    assert {name: bool(gates(spec)) for name, spec in specs.items()} == {"wl-0-a": False, "wl-0-b": True}


@pytest.mark.parametrize("groups", [None, V1Alpha2(), V1Beta1()], ids=["none", "v1alpha2", "v1beta1"])
def test_demand_says_whether_its_pods_form_a_group(groups: PodGroups | None) -> None:
    sim = a_simulator()
    sim.scheduler = Kube(groups, DefaultSchedulerConfig(placement=PlacementMode.ALL).placement_settings)
    (demand,) = planned(sim).placement_demands
    assert demand.grouped == (groups is not None)


def test_pod_without_a_node_stays_gated() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, replace(RACK_1, nodes={A: "n1"})))
    assert {name: bool(gates(spec)) for name, spec in pod_specs(sim).items()} == {
        "wl-0-a": False,
        "wl-0-b": True,
    }


def test_gang_released_in_part_has_an_event() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, Waiting("no place")))
    assert not planned(sim, Waiting("no place")).events
    plan = planned(sim, Assignment(nodes={A: "", B: ""}, in_part=True))
    assert [(event.regarding.name, event.reason) for event in plan.events] == [("wl-0", "ReleasedInPart")]


def test_successor_names_its_predecessor() -> None:
    sim = Simulator(a_set("a:2"))
    sim.scheduler = Kube(placement=DefaultSchedulerConfig().placement_settings)
    sim.execute(planned(sim, Assignment(nodes={A: "n1", PodSlot("wl-0-a", 1): "n2"})))
    actors.run_all(sim)
    leaving = min(sim.pods("wl-0-a"))
    actors.delete(sim, leaving)
    (demand,) = planned(sim).placement_demands
    found = [(pod.predecessor, pod.predecessor_name) for pod in demand.pods]
    assert sorted(found) == [("", ""), (sim.api.get("Pod", leaving)["spec"]["nodeName"], leaving)]


def test_updated_gang_names_the_predecessors_of_all_its_pods() -> None:
    sim = deployed("a:1 b:1", "x:1/1=a,b")
    nodes = {name: sim.api.get("Pod", name)["spec"]["nodeName"] for name in sim.pods()}
    sim.scheduler = Kube(placement=DefaultSchedulerConfig().placement_settings)
    change(sim)
    sim.reconcile_all()  # the set selects its replica
    (demand,) = planned(sim).placement_demands
    assert demand.was_scheduled
    assert {pod.predecessor_name: pod.predecessor for pod in demand.pods} == nodes


def test_replacement_pod_is_asked_for_beside_the_bound_ones() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    actors.run_all(sim)
    (lost,) = sim.pods("wl-0-a")
    actors.force_delete(sim, lost)
    plan = planned(sim)
    sim.execute(plan)
    (demand,) = plan.placement_demands
    assert [(pod.slot, pod.name != "") for pod in demand.pods] == [(A, False), (B, True)]
    assert demand.pinned == RACK_1.pins
    assert [pod.gated for pod in demand.pods] == [True, False]
    sim.execute(planned(sim, RACK_1))
    (successor,) = sim.pods("wl-0-a")
    assert successor != lost
    assert pod_specs(sim)["wl-0-a"]["nodeSelector"]["rack"] == "r1"


def test_pod_is_deleted_in_the_pass_that_creates_its_successor() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    actors.run_all(sim)
    (ended,) = sim.pods("wl-0-a")
    actors.fail(sim, ended)
    undecided = planned(sim)
    assert (undecided.intents, undecided.status_updates, undecided.report) == ((), (), None)
    assert undecided.awaits_round
    assert undecided.requeue_at == sim.now + timing.SUCCESSOR_WAIT
    assert len(undecided.placement_demands) == 1
    decided = planned(sim, RACK_1)
    assert [writes(decided).count(each) for each in ("delete Pod", "create Pod", "patch PodGang")] == [
        1,
        1,
        1,
    ]
    assert [event.reason for event in decided.events if not event.unless] == ["PodCreateSuccessful"]


def test_pod_is_deleted_while_the_decision_is_delayed() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    actors.run_all(sim)
    (ended,) = sim.pods("wl-0-a")
    actors.fail(sim, ended)
    assert writes(planned(sim, delay="nodes are not listed")).count("delete Pod") == 1
    assert writes(planned(sim, late=True)).count("delete Pod") == 1


def test_scheduled_gang_asks_for_nothing() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    actors.run_all(sim)
    assert planned(sim).placement_demands == ()
    assert planned(sim).intents == ()


def test_failed_gang_is_replaced_whole_and_asks_again() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    before = set(sim.pods())
    plan = planned(sim, replace(RACK_1, failed=True))
    assert writes(plan).count("delete Pod") == 2
    assert writes(plan).count("create Pod") == 0
    (demand,) = plan.placement_demands
    assert all(pod.gated for pod in demand.pods), "it may go elsewhere"
    sim.execute(plan)
    sim.execute(planned(sim, RACK_1))
    assert not before & set(sim.pods())


def test_gang_held_by_gates_of_the_user_does_not_ask() -> None:
    sim = a_simulator(schedulingGates=[{"name": "example.com/quota"}])
    plan = planned(sim)
    assert plan.placement_demands == ()
    sim.execute(plan)
    assert GANG_GATE in gates(pod_specs(sim)["wl-0-a"])


@pytest.mark.parametrize("mode", [PlacementMode.OFF, PlacementMode.CONSTRAINED])
def test_gang_without_constraint_is_left_to_the_scheduler(mode: PlacementMode) -> None:
    sim = a_simulator(mode)
    plan = planned(sim)
    sim.execute(plan)
    assert plan.placement_demands == ()
    assert not any(map(gates, pod_specs(sim).values()))


def test_unconstrained_gang_does_not_wait_for_missing_rights() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, problem="nodes is forbidden"))
    assert len(sim.pods()) == 2
    assert not any(map(gates, pod_specs(sim).values()))


def test_new_replica_says_why_it_is_not_decided_yet() -> None:
    sim = a_simulator()
    silent = planned(sim)
    assert (silent.report, silent.intents, silent.requeue_at) == (None, (), None)
    sim.execute(planned(sim, delay="nodes: 500 broken"))
    plan = planned(sim, delay="nodes: 500 broken")
    assert plan.report is not None
    (status,) = (each.desired for each in plan.status_updates if each.target.kind == "PodGang")
    assert any("annot place it yet: nodes: 500 broken" in each.message for each in status.conditions)
    assert not sim.pods(), "until it is decided"
    assert plan.placement_demands


def test_annotation_that_was_damaged_records_nothing() -> None:
    nothing = recorded({}, 0)
    for damaged in ("{", "[1]", '{"attempt": 1}', '{"attempt": -1}', '{"attempt": 99}'):
        assert recorded({keys.PLACEMENT: damaged}, 0) == nothing
    assert recorded({keys.PLACEMENT: '{"attempt": 1}'}, 1).attempt == 1


TOPOLOGY = ResolvedTopology("t", {"rack": "rack"}, found=True)
PACKED = {"topologyName": "t", "packDomain": "rack"}
SLOTS = (PodSlot("wl-0-a", 0), PodSlot("wl-0-x-0-b", 0))
SCALED = PodSlot("wl-0-x-1-b", 0)
IN_RACK_1 = Assignment(
    pins={slot.clique: {"rack": "r1"} for slot in SLOTS},
    nodes=dict(zip(SLOTS, ("n1", "n2"), strict=True)),
)
SCALED_IN_RACK_1 = Assignment(pins={SCALED.clique: {"rack": "r1"}}, nodes={SCALED: "n3"})


def a_packed_simulator(cliques: str = "a:1 b:1", groups: str = "x:1/1=b") -> Simulator:
    sim = Simulator(a_set(cliques, groups, topologyConstraint=PACKED))
    sim.scheduler = Kube(placement=DefaultSchedulerConfig().placement_settings)
    return sim


def packed_plan(sim: Simulator, labels: Mapping[str, Mapping[str, str]], **decisions: Decision) -> Plan:
    named = {name.replace("_", "-"): each for name, each in decisions.items()}
    placements = Placements(named, node_labels=labels)
    return plan_replica(replace(sim.snapshot(), placements=placements, topology=TOPOLOGY), sim.now)


def nodes_of(sim: Simulator) -> dict[str, str]:
    found = {name: sim.api.get("Pod", name)["spec"].get("nodeName", "") for name in sim.pods()}
    return {name: node for name, node in found.items() if node}


@pytest.mark.parametrize(
    ("racks", "expected"),
    [(("r1", "r1"), "r1"), (("renamed", "renamed"), "renamed"), ((), "r1")],
)
def test_scaled_gang_follows_the_nodes_of_its_base_gang(racks: tuple[str, ...], expected: str) -> None:
    sim = a_packed_simulator()
    sim.execute(packed_plan(sim, {}, wl_0=IN_RACK_1))
    actors.run_all(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    labels = {node: {"rack": rack} for node, rack in zip(sorted(nodes_of(sim).values()), racks, strict=False)}
    (demand,) = packed_plan(sim, labels, wl_0=IN_RACK_1).placement_demands
    (pod,) = (pod for part in demand.unit.parts for pod in part.pods)
    assert demand.gang.name == "wl-0-x-0"
    assert pod.shape.node_selector["rack"] == expected


@pytest.mark.parametrize(
    ("lost", "expected"), [(("wl-0-a", "wl-0-x-0-b"), "r1"), (("wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"), None)]
)
def test_base_gang_that_starts_over_follows_its_scaled_gangs(
    lost: tuple[str, ...], expected: str | None
) -> None:
    sim = a_packed_simulator()
    decided = {"wl_0": IN_RACK_1, "wl_0_x_0": SCALED_IN_RACK_1}
    sim.execute(packed_plan(sim, {}, **decided))
    actors.run_all(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    for _ in range(2):
        sim.execute(packed_plan(sim, {}, **decided))
        actors.run_all(sim)
    nodes = nodes_of(sim)
    assert len(nodes) == 3
    for name in nodes:
        if name.startswith(lost):
            actors.force_delete(sim, name)
    labels = {node: {"rack": "r1"} for node in nodes.values()}
    demands = {each.gang.name: each for each in packed_plan(sim, labels).placement_demands}
    pods = [pod for part in demands["wl-0"].unit.parts for unit in (part, *part.parts) for pod in unit.pods]
    assert {pod.shape.node_selector.get("rack") for pod in pods} == {expected}


def test_packed_gang_looks_ahead_to_its_extra_pods() -> None:
    (demand,) = packed_plan(a_packed_simulator("a:3/1", ""), {}).placement_demands
    assert demand.looks_ahead
    sim = a_simulator()
    (demand,) = planned(sim).placement_demands
    assert not demand.looks_ahead, "it may use any node"


def test_extra_pod_without_a_node_has_a_reason() -> None:
    sim = a_packed_simulator("a:2/1", "")
    placed = Assignment(pins={"wl-0-a": {"rack": "r1"}}, nodes={PodSlot("wl-0-a", 0): "n1"}, domain=("r1",))
    sim.execute(packed_plan(sim, {}, wl_0=placed))
    actors.run_all(sim)
    plan = packed_plan(sim, {}, wl_0=placed)
    (status,) = (each.desired for each in plan.status_updates if each.target.kind == "PodGang")
    (waiting,) = (each for each in status.conditions if each.type == "Waiting")
    assert waiting.reason == "InsufficientResources"
    assert waiting.message.startswith("no room in rack r1 for 1 pod beyond the minimum; ")
