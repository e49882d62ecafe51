"""What gangs ask for by the fallbacks of their set's constraint."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.plan.model import Plan
from grove.plan.placement.assignment import Assignment, Decision, Placements, PodSlot, Waiting
from grove.plan.replica import plan_replica
from grove.topology.constraints import ResolvedTopology
from tests.plan.builders import a_set
from tests.plan.gang.test_placement import a_simulator
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator

OWN = ResolvedTopology("own", {"block": "own/block", "rack": "own/rack"}, found=True)
OTHER = ResolvedTopology("other", {"rack": "other/rack"}, found=True)
NODES = {PodSlot("wl-0-a", 0): "n1", PodSlot("wl-0-b", 0): "n2"}
BY_OTHER = Assignment(
    attempt=2, pins={name: {"other/rack": "r1"} for name in ("wl-0-a", "wl-0-b")}, nodes=NODES
)


def a_constrained_set() -> Simulator:
    fallbacks = [{"packDomain": "block", "after": "10s"}, {"topologyName": "other", "after": "5s"}]
    constraint = {"topologyName": "own", "packDomain": "rack", "fallbacks": fallbacks}
    sim = Simulator(a_set("a:1 b:1", topologyConstraint=constraint))
    sim.scheduler = a_simulator().scheduler
    return sim


def planned(
    sim: Simulator,
    decision: Decision | None = None,
    topologies: tuple[ResolvedTopology, ...] = (OWN, OTHER),
) -> Plan:
    placements = Placements({"wl-0": decision} if decision is not None else {})
    snapshot = replace(sim.snapshot(), placements=placements, topology=OWN, fallback_topologies=topologies)
    return plan_replica(snapshot, sim.now)


def required(sim: Simulator) -> Any:
    """The level that the PodGang requires."""
    return sim.api.get("PodGang", "wl-0")["spec"]["topologyConstraint"]["packConstraint"]["required"]


def test_gang_asks_with_each_fallback_after_the_times_before_it() -> None:
    (demand,) = planned(a_constrained_set()).placement_demands
    assert (demand.unit.required, demand.levels) == ("own/rack", ("own/block", "own/rack"))
    assert [(each.attempt, each.after, each.unit.required, each.levels) for each in demand.fallbacks] == [
        (1, 10.0, "own/block", ("own/block", "own/rack")),
        (2, 15.0, "other/rack", ("other/rack",)),
    ]


@pytest.mark.parametrize("topology", [ResolvedTopology("other"), replace(OTHER, keys={"host": "host"})])
def test_fallback_without_its_level_is_not_tried(topology: ResolvedTopology) -> None:
    (demand,) = planned(a_constrained_set(), topologies=(OWN, topology)).placement_demands
    assert [each.attempt for each in demand.fallbacks] == [1]
    (demand,) = planned(a_constrained_set(), topologies=(topology, OTHER)).placement_demands
    assert [(each.attempt, each.after) for each in demand.fallbacks] == [(2, 15.0)]


@pytest.mark.parametrize("decision", [None, Waiting("no room")])
def test_gang_with_nodes_stays_with_its_fallback(decision: Decision | None) -> None:
    sim = a_constrained_set()
    sim.execute(planned(sim, BY_OTHER))
    assert required(sim) == "other/rack"
    actors.run_all(sim)
    (lost,) = sim.pods("wl-0-a")
    actors.force_delete(sim, lost)
    for _ in range(2):
        plan = planned(sim, decision)
        sim.execute(plan)
        (demand,) = plan.placement_demands
        assert (demand.attempt, demand.unit.required, demand.fallbacks) == (2, "other/rack", ())
        assert demand.pinned == BY_OTHER.pins
        assert required(sim) == "other/rack"


def test_gang_with_nodes_by_its_constraint_tries_no_fallback() -> None:
    sim = a_constrained_set()
    sim.execute(planned(sim, replace(BY_OTHER, attempt=0, pins={})))
    actors.run_all(sim)
    (lost,) = sim.pods("wl-0-a")
    actors.force_delete(sim, lost)
    (demand,) = planned(sim).placement_demands
    assert (demand.attempt, demand.fallbacks) == (0, ())
