"""Whether the topology constraints of gangs are enforced, in the plans of replicas and sets."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.meta import Condition
from grove.plan.model import Plan
from grove.plan.replica import plan_replica
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Beta1
from grove.schedulers.lpx import Lpx
from grove.schedulers.registry import SchedulerBackends
from grove.schedulers.unavailable import UnavailableBackend
from grove.schedulers.volcano import Volcano
from grove.topology.constraints import ResolvedTopology
from tests.plan.simulator.actors import run_all
from tests.plan.simulator.simulator import Simulator
from tests.schedulers.builders import RACK, a_body
from tests.topology.builders import a_topology, missing

NATIVE = Kube(V1Beta1())
BROKEN = UnavailableBackend("mine", "no module")
NOWHERE = ("", "")


def settled(
    scheduler: SchedulerBackend, wishes: str, topology: ResolvedTopology | None, groups: str = ""
) -> Simulator:
    sim = Simulator(a_body("a:2 b", groups, wishes))
    sim.scheduler, sim.topology = scheduler, topology
    sim.settle()
    return sim


def condition(plan: Plan, gang: str = "wl-0") -> Condition | None:
    (status,) = (each.desired for each in plan.status_updates if _is_gang(each, gang))
    return next((each for each in status.conditions if each.type == "TopologyConstraintsEnforced"), None)


def _is_gang(update: Any, gang: str) -> bool:
    return (update.target.kind, update.target.name) == ("PodGang", gang)


def outcome(found: Condition | None) -> tuple[str, str]:
    return (found.status, found.reason) if found is not None else NOWHERE


@pytest.mark.parametrize(
    ("scheduler", "wishes", "topology", "expected"),
    [
        (Kai(), "rack", a_topology(), ("True", "EnforcedByScheduler")),
        (Kai(), "", a_topology(), NOWHERE),
        (Kai(), "rack", missing(), ("False", "TopologyLevelsUnavailable")),
        (Kai(), "rack a:host", a_topology("zone rack"), ("False", "TopologyLevelsUnavailable")),
        (Kai(), "rack", None, ("False", "TopologyLevelsUnavailable")),
        (NATIVE, "rack", a_topology(), ("True", "EnforcedByScheduler")),
        (NATIVE, "rack a:host", a_topology(), ("False", "UnsupportedByScheduler")),
        (Kube(), "rack", a_topology(), ("False", "UnsupportedByScheduler")),
        (Kube(), "/rack", a_topology(), ("True", "EnforcedByScheduler")),
        (Volcano(), "/rack", a_topology(), ("False", "UnsupportedByScheduler")),
        (Lpx(), "rack", a_topology(), ("False", "UnsupportedByScheduler")),
        (BROKEN, "rack", a_topology(), ("False", "SchedulerObjectFailed")),
    ],
)
def test_condition_of_gang_and_set_by_scheduler(scheduler, wishes, topology, expected):
    plan = settled(scheduler, wishes, topology).plan()
    assert outcome(condition(plan)) == expected
    assert outcome(plan.report.enforced) == expected
    if expected[0] == "False":
        assert plan.report.enforced.message.startswith("PodGang wl-0: ")


def test_only_gangs_with_constraints_have_a_condition():
    sim = settled(Kai(), "a:host", a_topology(), "x:2/1=b")
    plan = sim.plan()
    assert outcome(condition(plan)) == ("True", "EnforcedByScheduler")
    assert condition(plan, "wl-0-x-0") is None


def test_missing_level_of_one_gang_is_not_reported_on_others():
    sim = settled(Kai(), "rack a:host", a_topology("zone rack"), "x:2/1=b")
    plan = sim.plan()
    assert outcome(condition(plan)) == ("False", "TopologyLevelsUnavailable")
    assert outcome(condition(plan, "wl-0-x-0")) == ("True", "EnforcedByScheduler")
    assert outcome(plan.report.enforced) == ("False", "TopologyLevelsUnavailable")


def test_scheduler_that_is_not_configured_is_reported():
    body = a_body("a:2", "", "rack")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "elsewhere"
    sim = Simulator(body)
    sim.backends, sim.topology = SchedulerBackends({"kai-scheduler": Kai()}, "kai-scheduler"), a_topology()
    sim.settle()
    assert outcome(condition(sim.plan())) == ("False", "SchedulerNotConfigured")
    assert len(sim.pods()) == 2


@pytest.mark.parametrize("state", ["new", "pending", "running"])
def test_dropped_constraint_holds_gang_without_pods(state):
    """Pods that exist may be bound at any moment, so that they are neither held nor left alone."""
    sim = Simulator(a_body("a:2", "", "rack"))
    sim.scheduler, sim.topology = NATIVE, a_topology()
    sim.step()
    if state != "new":
        sim.settle()
    if state == "running":
        run_all(sim)
    for group in sim.api.all("PodGroup"):
        sim.api.patch("PodGroup", group, {"spec": {"schedulingConstraints": None}}, by="api server")
    if state == "pending":
        sim.api.delete("Pod", min(sim.pods()))
    sim.settle()
    found = condition(sim.plan())
    assert outcome(found) == ("False", "ConstraintsDroppedByAPIServer")
    assert found is not None
    assert found.message.startswith("its pods wait: ") is (state == "new")
    assert len(sim.pods()) == (0 if state == "new" else 2)


@pytest.mark.parametrize(
    ("racks", "expected"),
    [
        (("r0", "r0"), ("True", "EnforcedByScheduler")),
        (("r0", "r1"), ("False", "RequiredDomainsNotMet")),
        (("r0", ""), ("False", "RequiredDomainsNotMet")),
        (None, ("True", "EnforcedByScheduler")),
    ],
    ids=["one rack", "two racks", "no label", "not listed"],
)
def test_pods_in_several_domains_are_reported_with_event(racks, expected):
    sim = Simulator(a_body("a:2", "", "rack"))
    sim.scheduler, sim.topology = Kai(), a_topology("rack")
    sim.settle()
    run_all(sim)
    sim.settle()
    pods = sorted(sim.pods().values(), key=lambda pod: pod.metadata.name)
    numbered = tuple(
        replace(pod, spec=replace(pod.spec, node_name=f"n{number}")) for number, pod in enumerate(pods)
    )
    labels = racks and {f"n{number}": {RACK: rack} if rack else {} for number, rack in enumerate(racks)}
    plan = plan_replica(replace(sim.snapshot(), pods=numbered, node_labels=labels), sim.now)
    assert outcome(condition(plan)) == expected
    (update,) = (each for each in plan.status_updates if _is_gang(each, "wl-0"))
    reasons = [(each.reason, each.warning, each.regarding.kind) for each in update.events]
    broken = expected[0] == "False"
    assert reasons == [("TopologyConstraintsNotEnforced", True, "PodGang")] * broken


def test_kind_that_is_not_served_is_reported():
    sim = settled(Kai(), "rack", a_topology())
    for group in sim.api.all("PodGroup"):
        sim.api.delete("PodGroup", group)
    sim.kind_problem = Kai().kind_problem("")
    found = condition(sim.plan())
    assert outcome(found) == ("False", "SchedulerObjectFailed")
    assert found is not None
    assert found.message == "podgroups.scheduling.run.ai is not served: install kai-scheduler with its CRDs"
    assert Kai().kind_problem("etcd is not available") == Lpx().kind_problem("") == ""


def test_nothing_is_claimed_before_the_object_exists():
    sim = Simulator(a_body("a:2", "", "rack"))
    sim.scheduler, sim.topology = Kai(), a_topology()
    sim.settle()
    sim.api.patch("PodGang", "wl-0", {"status": {"conditions": []}}, status=True)
    for group in sim.api.all("PodGroup"):
        sim.api.delete("PodGroup", group)
    assert condition(sim.plan()) is None
    sim.settle()
    assert outcome(condition(sim.plan())) == ("True", "EnforcedByScheduler")


def test_condition_is_kept_until_new_group_is_compared():
    sim = Simulator(a_body("a:2", "", "rack"))
    sim.scheduler, sim.topology = NATIVE, a_topology()
    sim.step()
    for group in sim.api.all("PodGroup"):
        sim.api.patch("PodGroup", group, {"spec": {"schedulingConstraints": None}}, by="api server")
    sim.settle()
    for group in sim.api.all("PodGroup"):
        sim.api.delete("PodGroup", group)
    assert outcome(condition(sim.plan())) == ("False", "ConstraintsDroppedByAPIServer")
    sim.settle()
    assert outcome(condition(sim.plan())) == ("True", "EnforcedByScheduler")


@pytest.mark.parametrize(
    ("unused", "reason", "words"),
    [
        (frozenset({RACK}), "TopologyLabelMissing", f"no node has the label {RACK}"),
        (frozenset({"zone"}), "PodGroupsNotScheduled", ""),
        (frozenset(), "PodGroupsNotScheduled", ""),
    ],
)
def test_waiting_gang_names_label_that_no_node_has(unused, reason, words):
    sim = settled(Kai(), "rack/host", a_topology())
    plan = plan_replica(replace(sim.snapshot(), unused_labels=unused), sim.now)
    (status,) = (each.desired for each in plan.status_updates if _is_gang(each, "wl-0"))
    (found,) = (each for each in status.conditions if each.type == "Scheduled")
    assert found.reason == reason
    assert words in found.message
