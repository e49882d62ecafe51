"""The fabric domains that the plan of a replica asks placement to keep in one partition."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api.configuration.types import Scheduler
from grove.api.naming import annotations as keys
from grove.plan.placement.assignment import Assignment, Placements, PodSlot, to_annotation
from grove.plan.placement.demand import Demand, FabricDomain, PackedDomain, walk
from grove.plan.placement.needs import ClaimSources
from grove.plan.replica import plan_replica
from grove.schedulers.registry import backends
from grove.topology.placement.needs.devices import DeviceCatalog
from tests.plan.fabric.test_replica_domains import domain, gpu_clique, owned, resolved, workload
from tests.plan.simulator.simulator import Simulator

KEY = "nvidia.com/gpu.clique"
PLACING = backends(Scheduler()).by_name["default-scheduler"]
SOURCES = ClaimSources(DeviceCatalog(), {"wl-0": {}, "a": {}, "b": {}})
AUTO = PackedDomain(FabricDomain("ns", "wl-0"), KEY, required=False)


def demands(body: dict[str, Any], *domains: str, value: str = "") -> dict[str, Demand]:
    """By gang, what a new replica asks for."""
    if value:
        body["metadata"].setdefault("annotations", {})[keys.PACK_DOMAINS] = value
    sim = Simulator(body)
    found = replace(sim.snapshot(), scheduler=PLACING, placements=Placements(sources=SOURCES))
    ready = [owned(domain(name), found) for name in domains]
    plan = plan_replica(resolved(found, *ready), sim.now)
    return {demand.gang.name: demand for demand in plan.placement_demands}


def partitions(demand: Demand) -> dict[str, tuple[int, ...]]:
    return {unit.name: unit.pods[0].shape.partitions for unit in walk(demand.unit) if unit.pods}


def test_pods_of_a_domain_ask_for_one_partition() -> None:
    demand = demands(workload(gpu_clique("worker:2")), "wl-0")["wl-0"]
    assert demand.domains == (AUTO,)
    assert partitions(demand) == {"wl-0-router": (), "wl-0-worker": (0,)}
    assert KEY in demand.label_keys
    assert not demand.constrained


def test_annotation_of_the_set_decides() -> None:
    demand = demands(workload(gpu_clique("worker:2")), "wl-0", value="required")["wl-0"]
    assert demand.domains == (replace(AUTO, required=True),)
    assert demand.constrained, "it is never released in part"
    demand = demands(workload(gpu_clique("worker:2")), "wl-0", value="off")["wl-0"]
    assert demand.domains == ()
    assert partitions(demand)["wl-0-worker"] == ()


def test_scaled_gangs_are_looked_ahead_to() -> None:
    body = workload(gpu_clique("worker:2"), groups="g:3/1=worker")
    demand = demands(body, "wl-0")["wl-0"]
    assert [unit.name for unit in demand.further] == ["wl-0-g-0", "wl-0-g-1"]
    assert all(
        pod.shape.partitions == (0,) for unit in demand.further for part in walk(unit) for pod in part.pods
    )
    assert (
        demands(workload(gpu_clique("worker:2"), groups="g:3/1=worker"), "wl-0", value="off")["wl-0"].further
        == ()
    )


def test_pins_of_partitions_are_read_while_they_are_required() -> None:
    pins = {"wl-0-worker": {KEY: "p1"}}
    body = workload(gpu_clique("worker:1"))
    for value, expected in (("required", pins), ("preferred", {"wl-0-worker": {}})):
        body["metadata"]["annotations"][keys.PACK_DOMAINS] = value
        sim = Simulator(body)
        nodes = {PodSlot("wl-0-worker", 0): "n1", PodSlot("wl-0-router", 0): "n2"}
        assignment = Assignment(pins=pins, nodes=nodes)
        assert to_annotation(assignment)

        def planned(sim: Simulator = sim, assignment: Assignment = assignment) -> Any:
            placements = Placements({"wl-0": assignment}, sources=SOURCES)
            found = replace(sim.snapshot(), scheduler=PLACING, placements=placements)
            return plan_replica(resolved(found, owned(domain("wl-0"), found)), sim.now)

        sim.execute(planned())
        (demand,) = planned().placement_demands
        assert demand.pinned == expected
