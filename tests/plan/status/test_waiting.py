"""Why pods of a replica wait: on its gangs, cliques and groups, and as a roll-up for the set."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.configuration.default_scheduler import DefaultSchedulerConfig, PlacementMode
from grove.api.types.common import LastError
from grove.api.types.podgang import GangTopologyConstraint, PackConstraint
from grove.fabrics.domain_pods import HeldNode
from grove.fabrics.resolved import DomainReport, DomainState
from grove.plan.cliques.health import CliqueHealth
from grove.plan.conditions import find
from grove.plan.members.counts import PodCounts
from grove.plan.model import Plan, StatusUpdate
from grove.plan.placement.assignment import Assignment, Placements, PodSlot, Waiting
from grove.plan.replica import plan_replica
from grove.plan.status.waiting import _domain_reasons
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import Evidence, WaitReason
from grove.schedulers.kube import Kube
from tests.plan.builders import a_set
from tests.plan.fabric.test_status import FORMING, READY, a_domain, on
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import expand_now
from tests.plan.simulator.simulator import Simulator

FULL = WaitReason(
    Code.INSUFFICIENT_RESOURCES,
    "no place now: 3 free",
    evidence=(Evidence(Code.INSUFFICIENT_RESOURCES, "the cluster", have=3),),
    changing=True,
)


def started(cliques: str = "a:2/1 b:1", groups: str = "", **template: Any) -> Simulator:
    sim = Simulator(a_set(cliques, groups, **template))
    sim.settle()
    return sim


def planned(sim: Simulator, **changes: Any) -> Plan:
    return plan_replica(replace(sim.snapshot(), **changes), sim.now)


def update(plan: Plan, name: str) -> StatusUpdate:
    return next(each for each in plan.status_updates if each.target.name == name)


def waiting(plan: Plan, name: str) -> tuple[str, str]:
    """Code and message of an object; empty if it does not wait."""
    found = find(update(plan, name).desired.conditions, "Waiting")
    return (found.reason, found.message) if found is not None else ("", "")


def codes(plan: Plan, *names: str) -> list[str]:
    return [waiting(plan, name)[0] for name in names]


def placing(sim: Simulator, decision: Any = None, **more: Any) -> Plan:
    sim.scheduler = Kube(placement=DefaultSchedulerConfig(placement=PlacementMode.ALL).placement_settings)
    decisions = {"wl-0": decision} if decision is not None else {}
    return planned(sim, placements=Placements(decisions, **more))


def test_starting_and_running_pods_wait_for_nothing():
    sim = started()
    plan = planned(sim)
    assert (codes(plan, "wl-0", "wl-0-a", "wl-0-b"), plan.report.ready) == (["", "", ""], False)
    actors.run_all(sim)
    plan = planned(sim)
    assert plan.report.ready
    assert codes(plan, "wl-0", "wl-0-a", "wl-0-b") == ["", "", ""]
    assert plan.report.waiting.first is None


def test_pod_without_image_is_the_reason_of_gang_and_clique():
    sim = started()
    actors.run(sim, *sim.pods("wl-0-a"))
    (name,) = sim.pods("wl-0-b")
    actors.lack_image(sim, name)
    plan = planned(sim)
    assert codes(plan, "wl-0", "wl-0-a", "wl-0-b") == ["ImagePullFailed", "", "ImagePullFailed"]
    assert waiting(plan, "wl-0")[1].startswith(f"Pod {name}: container main cannot pull its image; correct")
    assert plan.report.waiting.counts == ((Code.IMAGE_PULL_FAILED, 1),)


def test_clique_above_its_minimum_says_why_a_pod_is_missing():
    sim = started("a:2/1")
    first, second = sim.pods("wl-0-a")
    actors.run(sim, first)
    actors.crash(sim, second)
    assert codes(planned(sim), "wl-0", "wl-0-a") == ["ContainerCrashing", "ContainerCrashing"]


def test_clique_says_that_its_gang_is_not_restarted():
    sim = started("a:1")
    actors.run_all(sim)
    sim.settle()
    (name,) = sim.pods("wl-0-a")
    actors.make_unready(sim, name)
    started_container = {"name": "main", "started": True, "ready": False}
    status = {"status": {"containerStatuses": [started_container]}}
    sim.api.patch("Pod", name, status, status=True, by="kubelet")
    gang = sim.snapshot().gangs["wl-0"]
    history = {"grove.io/terminations": '{"wl-0": {"at": "1970-01-01T00:00:01Z", "count": 5}}'}
    marked = replace(gang, metadata=replace(gang.metadata, annotations=history))
    plan = planned(sim, gangs={"wl-0": marked})
    assert codes(plan, "wl-0", "wl-0-a") == ["TerminationBudgetSpent"] * 2


def test_words_of_the_scheduler_are_the_reason():
    sim = started("a:2")
    actors.refuse(sim)
    for name in sim.pods():
        (condition,) = sim.api.get("Pod", name)["status"]["conditions"]
        fact = {**condition, "message": "0/1 nodes are available: 1 Insufficient cpu."}
        sim.api.patch("Pod", name, {"status": {"conditions": [fact]}}, status=True, by="scheduler")
    plan = planned(sim)
    assert waiting(plan, "wl-0")[0] == "InsufficientResources"
    assert "0/1 nodes are available" in waiting(plan, "wl-0")[1]
    assert "0/1" not in waiting(plan, "wl-0-a")[1]


def test_placement_is_the_reason_with_its_evidence():
    sim = started("a:2")
    plan = placing(sim, Waiting(FULL.message, reason=FULL))
    assert waiting(plan, "wl-0") == ("InsufficientResources", f"no place now: 3 free; {FULL.advice}")
    assert waiting(plan, "wl-0-a") == (
        "InsufficientResources",
        f"PodGang wl-0: {FULL.summary}; {FULL.advice}",
    )
    assert str(plan.report.waiting.first.about) == "PodGang wl-0"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"problem": "nodes: forbidden"}, ""),  # a gang without constraints is left to the scheduler
        ({"delay": "nodes: no answer"}, "NodesNotListed"),
        ({}, ""),
    ],
    ids=["problem", "delay", "undecided"],
)
def test_placement_without_decision_has_its_own_reason(more, code):
    assert codes(placing(started("a:2"), **more), "wl-0") == [code]


def test_gang_released_in_part_says_so():
    sim = started("a:2")
    assignment = Assignment(nodes={PodSlot("wl-0-a", 0): "n"}, in_part=True)
    assert codes(placing(sim, assignment), "wl-0") == ["ReleasedInPart"]


def test_bound_pods_do_not_wait_for_nodes():
    sim = started("a:1 b:1")
    actors.schedule(sim, *sim.pods("wl-0-a"))
    plan = placing(sim, Waiting(FULL.message, reason=FULL))
    full = "InsufficientResources"
    assert codes(plan, "wl-0", "wl-0-a", "wl-0-b") == [full, "", full]


def test_scaled_gang_waits_for_the_base_gang():
    sim = started("a:1 b:1", "x:3/1=b")
    plan = placing(sim, Waiting(FULL.message, reason=FULL))
    assert codes(plan, "wl-0", "wl-0-x-0", "wl-0-x-1-b") == [
        "InsufficientResources",
        "BaseGangNotScheduled",
        "BaseGangNotScheduled",
    ]
    assert codes(plan, "wl-0-x") == ["InsufficientResources"]
    rollup = plan.report.waiting
    assert rollup.line.endswith("; and 2 more gangs: 2 BaseGangNotScheduled")
    assert rollup.first.code is Code.INSUFFICIENT_RESOURCES


def test_error_of_a_clique_is_the_first_reason():
    sim = started("a:2")
    actors.lack_image(sim, next(iter(sim.pods())))
    error = LastError("ERR_CREATE_POD", "x message: y, cause: exceeded quota: few", "2026-01-01T00:00:00Z")
    clique = sim.snapshot().cliques["wl-0-a"]
    known = replace(clique, status=replace(clique.status, last_errors=(error,)))
    plan = planned(sim, cliques={"wl-0-a": known})
    assert codes(plan, "wl-0", "wl-0-a") == ["QuotaExceeded", "QuotaExceeded"]
    assert waiting(plan, "wl-0")[1].startswith("PodClique wl-0-a: exceeded quota: few; ")


def test_error_of_a_group_is_its_reason():
    sim = started("a:1 b:1", "x:1=b")
    group = sim.snapshot().groups["wl-0-x"]
    error = LastError("ERR_SYNC_PCSG_RESOURCE_CLAIM", "there is no template", "2026-01-01T00:00:00Z")
    known = replace(group, status=replace(group.status, last_errors=(error,)))
    assert codes(planned(sim, groups={"wl-0-x": known}), "wl-0-x") == ["ClaimMissing"]


def test_error_is_no_reason_of_a_group_with_ready_pods():
    sim = started("a:1 b:1", "x:1=b")
    actors.run(sim, *sim.pods("wl-0-x-0-b"))
    group = sim.snapshot().groups["wl-0-x"]
    error = LastError("ERR_SYNC_HPA", "it failed", "2026-01-01T00:00:00Z")
    known = replace(group, status=replace(group.status, last_errors=(error,)))
    assert codes(planned(sim, groups={"wl-0-x": known}), "wl-0-x") == [""]


def test_replica_above_its_minimum_is_not_ready_without_a_pod():
    sim = started("a:2/1")
    first, _ = sim.pods("wl-0-a")
    actors.run(sim, first)
    report = planned(sim).report
    assert (report.available, report.ready) == (True, False)


def test_scheduler_that_is_not_listed_is_the_reason():
    body = a_set("a:2")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "other"
    sim = Simulator(body)
    sim.settle()
    assert codes(planned(sim), "wl-0") == ["SchedulerNotConfigured"]


def test_label_that_no_node_has_is_the_reason():
    sim = started("a:2")
    pack = GangTopologyConstraint(PackConstraint(required="rack"))
    gang = sim.snapshot().gangs["wl-0"]
    gang = replace(gang, spec=replace(gang.spec, topology_constraint=pack))
    plan = planned(sim, gangs={"wl-0": gang}, unused_labels=frozenset({"rack", "zone"}))
    assert waiting(plan, "wl-0")[0] == "TopologyLabelMissing"
    assert waiting(plan, "wl-0")[1].startswith("no node has the label rack of a required level; ")


def test_init_container_waits_for_the_clique_before():
    sim = started("a:1 b:1", cliqueStartupType="CliqueStartupTypeInOrder")
    actors.schedule(sim, *sim.pods())
    (name,) = sim.pods("wl-0-b")
    status = {"name": "grove-initc", "ready": False, "state": {"running": {}}}
    sim.api.patch("Pod", name, {"status": {"initContainerStatuses": [status]}}, status=True, by="kubelet")
    plan = planned(sim)
    assert codes(plan, "wl-0", "wl-0-a", "wl-0-b") == [
        "InitContainerWaitsForClique",
        "",
        "InitContainerWaitsForClique",
    ]
    assert "waits for PodClique wl-0-a: 0 of 1 pods are ready" in waiting(plan, "wl-0")[1]
    actors.run(sim, *sim.pods("wl-0-a"))
    assert codes(planned(sim), "wl-0-b") == [""]


def test_new_reason_is_an_event_of_the_gang():
    sim = started("a:2")
    plan = placing(sim, Waiting(FULL.message, reason=FULL))
    (event,) = update(plan, "wl-0").events
    assert (event.regarding.name, event.reason, event.warning) == ("wl-0", "InsufficientResources", True)
    assert event.note == waiting(plan, "wl-0")[1]
    assert update(plan, "wl-0-a").events == ()


def test_known_reason_has_no_event():
    sim = started("a:2")
    decision = Waiting(FULL.message, reason=FULL)
    sim.execute(placing(sim, decision))
    desired = update(placing(sim, decision), "wl-0").desired
    gang = replace(sim.snapshot().gangs["wl-0"], status=desired)
    sim.scheduler = Kube(placement=DefaultSchedulerConfig(placement=PlacementMode.ALL).placement_settings)
    again = planned(sim, placements=Placements({"wl-0": decision}), gangs={"wl-0": gang})
    assert update(again, "wl-0").events == ()


FAILURE = LastError("ERR_SYNC_COMPUTEDOMAIN", "no", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("domain", "scheduled", "code"),
    [
        (a_domain(0, nodes=READY), 1, None),
        (a_domain(0, DomainState.NOT_SERVED), 0, Code.COMPUTE_DOMAIN_CRD_MISSING),
        (a_domain(0, DomainState.CONFLICT), 0, Code.COMPUTE_DOMAIN_CONFLICT),
        (a_domain(0, DomainState.TEMPLATE_CONFLICT), 0, Code.COMPUTE_DOMAIN_CONFLICT),
        (a_domain(0, DomainState.TERMINATING), 0, Code.COMPUTE_DOMAIN_TERMINATING),
        (a_domain(0, DomainState.MISSING, there=False), 0, Code.COMPUTE_DOMAIN_NOT_READY),
        (a_domain(0, DomainState.MISSING, failure=FAILURE, there=False), 0, Code.COMPUTE_DOMAIN_FAILED),
        (a_domain(0, nodes=FORMING), 1, Code.COMPUTE_DOMAIN_NOT_READY),
        (a_domain(0, nodes=FORMING), 0, None),
        (replace(a_domain(0), report=DomainReport(busy="others hold n1")), 0, Code.IMEX_CHANNEL_BUSY),
        (replace(a_domain(0, nodes=READY), report=DomainReport(busy="held")), 2, None),
        (a_domain(0, DomainState.TEMPLATE_MISSING), 0, Code.CLAIM_NOT_CREATED),
        (on(a_domain(0), "n7", held=(HeldNode("n7", 20.0),)), 1, Code.NODE_HELD_BY_OTHER_DOMAIN),
        (on(a_domain(0), "n8", held=(HeldNode("n8", 20.0),)), 1, Code.COMPUTE_DOMAIN_NOT_READY),
    ],
)
def test_domain_that_is_not_ready_has_a_code(domain, scheduled, code):
    clique = replace(expand_now(started("a:2")).cliques[0], fabric_domains=(domain,))
    view = CliqueHealth(clique, PodCounts(replicas=2, scheduled=scheduled))
    assert [each.code for each in _domain_reasons(domain, view, 100.0, {"n7"})] == ([code] if code else [])
