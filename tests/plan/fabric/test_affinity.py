"""Fabric domains in one partition where a scheduler alone chooses the nodes: pod affinity, and the condition
that says whether it is enforced."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.configuration.types import Scheduler
from grove.plan.placement.assignment import Assignment, Placements, PodSlot
from grove.plan.placement.needs import ClaimSources
from grove.plan.replica import plan_replica
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Alpha2
from grove.schedulers.lpx import Lpx
from grove.schedulers.registry import backends
from grove.topology.placement.needs.devices import DeviceCatalog
from tests.plan.fabric.test_replica_domains import bodies, domain, gpu_clique, owned, resolved, workload
from tests.plan.simulator.actors import force_delete, run_all
from tests.plan.simulator.simulator import Simulator
from tests.topology.builders import a_topology
from tests.topology.builders import packed as constrained

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {
    "topologyKey": "nvidia.com/gpu.clique",
    "labelSelector": {"matchLabels": {"grove.io/computedomain": "wl-0"}},
}
WEIGHTED = [{"weight": 100, "podAffinityTerm": TERM}]
OWN = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}


def packed(value: str = "", own: dict[str, Any] | None = None, wishes: str = "") -> Simulator:
    """A set with a domain, and with this annotation, affinity and topology constraints."""
    worker = gpu_clique("worker:1")
    if own:
        worker["spec"]["podSpec"]["affinity"] = {"podAffinity": own}
    body = workload(worker)
    if wishes:
        body = constrained(body, wishes)
    if value:
        body["metadata"]["annotations"]["grove.io/pack-domains"] = value
    return Simulator(body)


def snapshot(sim: Simulator, scheduler: SchedulerBackend | None = None, **more: Any) -> Any:
    found = replace(sim.snapshot(), scheduler=scheduler or Kube(), **more)
    return resolved(found, owned(domain("wl-0"), found))


def affinity(sim: Simulator, **more: Any) -> dict[str, Any]:
    pods = bodies(plan_replica(snapshot(sim, **more), 0.0), "Pod")
    assert "affinity" not in pods["router"]["spec"], "it is in no domain"
    found: dict[str, Any] = pods["worker"]["spec"].get("affinity", {}).get("podAffinity", {})
    return found


@pytest.mark.parametrize(
    ("value", "own", "expected"),
    [
        ("", None, {PREFERRED: WEIGHTED}),
        ("preferred", None, {PREFERRED: WEIGHTED}),
        ("off", None, {}),
        ("required", None, {REQUIRED: [TERM]}),
        ("required", {REQUIRED: [OWN]}, {REQUIRED: [OWN], PREFERRED: WEIGHTED}),
        ("required", {PREFERRED: []}, {REQUIRED: [TERM], PREFERRED: []}),
    ],
)
@pytest.mark.parametrize("scheduler", [Kube(), Lpx()], ids=["kube", "lpx"])
def test_pods_are_kept_together_by_affinity(
    value: str, own: Any, expected: Any, scheduler: SchedulerBackend
) -> None:
    assert affinity(packed(value, own), scheduler=scheduler) == expected


def test_pods_that_the_operator_places_have_no_affinity() -> None:
    nodes = {PodSlot("wl-0-worker", 0): "n1", PodSlot("wl-0-router", 0): "n2"}
    sources = ClaimSources(DeviceCatalog(), {"wl-0": {}})
    placements = Placements({"wl-0": Assignment(nodes=nodes)}, sources=sources)
    scheduler = backends(Scheduler()).by_name["default-scheduler"]
    assert affinity(packed("required"), scheduler=scheduler, placements=placements) == {}


def enforced(sim: Simulator, scheduler: SchedulerBackend) -> tuple[str, str, str]:
    """Status, reason and message of the gang's condition, once the gang exists."""
    sim.execute(plan_replica(snapshot(sim, scheduler), sim.now))
    plan = plan_replica(snapshot(sim, scheduler), sim.now)
    statuses = (each.desired for each in plan.status_updates if each.target.kind == "PodGang")
    conditions = (each for status in statuses for each in status.conditions)
    found = [each for each in conditions if each.type == "TopologyConstraintsEnforced"]
    return (found[0].status, found[0].reason, found[0].message) if found else ("", "", "")


def test_condition_says_that_a_partition_is_only_preferred() -> None:
    status, reason, message = enforced(packed("required", {REQUIRED: [OWN]}), Kube())
    assert (status, reason) == ("False", "UnsupportedByScheduler")
    assert "wl-0-worker have a required pod affinity of their own" in message
    assert "is only preferred" in message


def test_condition_and_pods_agree_about_a_scheduler_term() -> None:
    """A pod outside of the group of its gang has a required term from its scheduler."""
    sim = packed("required", wishes="rack")
    sim.scheduler, sim.topology = Kube(V1Alpha2()), a_topology()
    for _ in range(3):
        sim.execute(plan_replica(snapshot(sim, sim.scheduler), sim.now))
    assert affinity_of_worker(sim) == {REQUIRED: [TERM]}
    assert enforced(sim, sim.scheduler)[:2] == ("True", "EnforcedByScheduler")
    run_all(sim)
    sim.topology = a_topology("zone rack=example.com/other-rack host")
    sim.execute(plan_replica(snapshot(sim, sim.scheduler), sim.now))
    force_delete(sim, next(name for name in sim.pods() if "worker" in name))
    for _ in range(2):
        sim.execute(plan_replica(snapshot(sim, sim.scheduler), sim.now))
    found = affinity_of_worker(sim)
    assert [each["topologyKey"] for each in found[REQUIRED]] == ["example.com/other-rack"]
    assert found[PREFERRED] == WEIGHTED
    status, reason, message = enforced(sim, sim.scheduler)
    assert (status, reason) == ("False", "UnsupportedByScheduler")
    assert message.startswith("New pods of wl-0-worker join no group of their scheduler")
    assert "is only preferred. Delete all pods of the gang, or use placement" in message


def affinity_of_worker(sim: Simulator) -> dict[str, Any]:
    """The pod affinity of the worker that exists."""
    (pod,) = (each for each in sim.api.objects("Pod") if "worker" in each["metadata"]["name"])
    found: dict[str, Any] = pod["spec"]["affinity"]["podAffinity"]
    return found


def test_condition_says_that_the_scheduler_keeps_the_partition() -> None:
    assert enforced(packed("required"), Kube())[:2] == ("True", "EnforcedByScheduler")
    assert enforced(packed("preferred"), Kube()) == ("", "", "")
