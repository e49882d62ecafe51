"""What pods need besides the resources of nodes, in the demands of their gangs and in conditions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.meta import Condition
from grove.plan.model import Plan, StatusUpdate
from grove.plan.placement.assignment import Placements, Waiting
from grove.plan.placement.needs import ClaimSources, KnownVolume
from grove.plan.replica import plan_replica
from grove.topology.placement.model import Amounts, PodShape, Requirement, Term
from grove.topology.placement.needs.device_classes import Conditions
from grove.topology.placement.needs.devices import DeviceCatalog, resource_of
from tests.plan.builders import a_clique, a_set
from tests.plan.gang.test_placement import RACK_1, a_simulator, gates, pod_specs
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator

GPU = resource_of("gpu")
CONDITIONS: Conditions = frozenset({("driver", "gpu.example.com")})
CATALOG = DeviceCatalog({"gpu": CONDITIONS}, {"odd": "its selectors are not understood"})
CLAIM = {"name": "gpus", "resourceClaimTemplateName": "two"}
VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}
IN_ZONE = (Term((Requirement("zone", "In", ("z1",)),)),)


def template(device_class: str = "gpu", count: int = 2) -> dict[str, Any]:
    exactly = {"deviceClassName": device_class, "count": count}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


SOURCES = ClaimSources(CATALOG, {"two": template()}, {})


def planned(sim: Simulator, sources: ClaimSources = SOURCES, **more: Any) -> Plan:
    placements = Placements(sources=sources, **more)
    return plan_replica(replace(sim.snapshot(), placements=placements), sim.now)


def shapes(plan: Plan) -> dict[str, PodShape]:
    """By clique, the shape of its pods in the only demand."""
    (demand,) = plan.placement_demands
    return {unit.name: unit.pods[0].shape for unit in demand.unit.parts}


def devices(plan: Plan) -> dict[str, Amounts]:
    (demand,) = plan.placement_demands
    return demand.devices


def condition(sim: Simulator, sources: ClaimSources) -> Condition | None:
    """The condition about protection after the gang was found to wait."""
    sim.execute(planned(sim, sources, decisions={"wl-0": Waiting("no room")}))
    plan = planned(sim, sources, decisions={"wl-0": Waiting("no room")})
    sim.execute(plan)
    (status,) = (each.desired for each in plan.status_updates if each.target.kind == "PodGang")
    return next((each for each in status.conditions if each.type == "PlacementUnprotected"), None)


def is_gang(update: StatusUpdate) -> bool:
    return update.target.kind == "PodGang"


def test_claim_by_template_is_demanded_for_each_pod() -> None:
    plan = planned(a_simulator(resourceClaims=[CLAIM]))
    assert devices(plan) == {"wl-0-a": {GPU: 2}}
    assert shapes(plan)["wl-0-a"].requests[GPU] == 2
    assert GPU not in shapes(plan)["wl-0-b"].requests


def sharing(scope: str, level: str) -> Simulator:
    body = a_set("a:1 b:1")
    spec = body["spec"]["template"]
    spec["resourceClaimTemplates"] = [{"name": "own", "templateSpec": {"spec": template(count=3)}}]
    shared = [{"name": "own", "scope": scope}]
    if level == "clique":
        spec["cliques"][0] = {**a_clique("a:1"), "resourceSharing": shared}
    else:
        spec["resourceSharing"] = shared
    sim = Simulator(body)
    sim.scheduler = a_simulator().scheduler
    return sim


def test_own_claim_of_each_pod_is_demanded() -> None:
    assert devices(planned(sharing("PerReplica", "clique"))) == {"wl-0-a": {GPU: 3}}


@pytest.mark.parametrize(("scope", "level"), [("AllReplicas", "clique"), ("PerReplica", "set")])
def test_claim_that_pods_share_is_not_counted_and_said_so(scope: str, level: str) -> None:
    sim = sharing(scope, level)
    assert devices(planned(sim)) == {}
    found = condition(sim, SOURCES)
    assert found is not None
    assert "Not counted and not held: claim own: pods share it" in found.message


UNLISTED = pytest.mark.parametrize(
    ("sources", "pod_spec"),
    [
        (replace(SOURCES, devices=None), {"resourceClaims": [CLAIM]}),
        (replace(SOURCES, templates=None), {"resourceClaims": [CLAIM]}),
        (replace(SOURCES, volumes=None), {"volumes": [VOLUME]}),
    ],
    ids=["devices", "templates", "volumes"],
)


@UNLISTED
def test_gang_is_undecided_until_everything_is_listed(sources: ClaimSources, pod_spec: Any) -> None:
    sim = a_simulator(**pod_spec)
    plan = planned(sim, sources)
    assert plan.placement_demands == ()
    assert not [each for each in plan.intents if each.id.startswith(("create Pod ", "create PodGang"))]


def test_new_replica_says_why_volumes_are_not_listed() -> None:
    sim, sources = a_simulator(volumes=[VOLUME]), replace(SOURCES, volumes=None)
    silent = planned(sim, sources)
    assert (silent.report, silent.intents) == (None, ())
    assert silent.requeue_at == sim.now + timing.PLACEMENT_LIST_CHECK
    failing = replace(sources, delay="volumes: 500 broken")
    sim.execute(planned(sim, failing))
    plan = planned(sim, failing)
    (status,) = (each.desired for each in plan.status_updates if each.target.kind == "PodGang")
    assert any("annot place it yet: volumes: 500 broken" in each.message for each in status.conditions)
    assert plan.requeue_at is None, "an event follows once they are listed"


@UNLISTED
def test_demands_are_complete_once_everything_is_listed(sources: ClaimSources, pod_spec: Any) -> None:
    sim, known = a_simulator(**pod_spec), replace(SOURCES, volumes={"data": KnownVolume(True)})
    sim.execute(planned(sim, known, decisions={"wl-0": Waiting("no room")}))
    found = [planned(sim, each) for each in (sources, known)]
    assert [(len(plan.placement_demands), plan.demands_complete) for plan in found] == [(0, False), (1, True)]


@pytest.mark.parametrize(
    ("pod_spec", "missing"),
    [
        ({"resourceClaims": [{**CLAIM, "resourceClaimTemplateName": "x"}]}, "ResourceClaimTemplate x"),
        ({"resourceClaims": [{"name": "gpus", "resourceClaimName": "x"}]}, "ResourceClaim x"),
        ({"volumes": [VOLUME]}, "PersistentVolumeClaim data"),
    ],
)
def test_gang_waits_for_what_its_claims_name(pod_spec: Any, missing: str) -> None:
    sim, sources = a_simulator(**pod_spec), replace(SOURCES, claims=frozenset({"y"}))
    plan = planned(sim, sources)
    assert plan.placement_demands == ()
    sim.execute(plan)
    again = planned(sim, sources)
    (status,) = (each.desired for each in again.status_updates if each.target.kind == "PodGang")
    assert any(f"waits for {missing}, which does not exist" in each.message for each in status.conditions)


NOT_BOUND = replace(SOURCES, volumes={"data": KnownVolume(False, bound_first=True)})


def test_gang_waits_for_a_volume_that_is_bound_first() -> None:
    """The scheduler would refuse its pods, after it has bound the others."""
    sim = a_simulator(volumes=[VOLUME])
    plan = planned(sim, NOT_BOUND)
    assert plan.placement_demands == ()
    sim.execute(plan)
    (status,) = (each.desired for each in planned(sim, NOT_BOUND).status_updates if is_gang(each))
    message = "waits for PersistentVolumeClaim data, which is not bound"
    assert any(message in each.message for each in status.conditions)
    waiting = next(each for each in status.conditions if each.type == "Waiting")
    assert waiting.reason == "VolumeNotBound"
    bound = replace(SOURCES, volumes={"data": KnownVolume(True)})
    assert len(planned(sim, bound).placement_demands) == 1


@pytest.mark.parametrize("sources", [NOT_BOUND, SOURCES], ids=["not bound", "does not exist"])
def test_gang_that_has_begun_does_not_wait_for_a_volume(sources: ClaimSources) -> None:
    """It would stay incomplete, and nothing would start it over."""
    sim = a_simulator(volumes=[VOLUME])
    bound = replace(SOURCES, volumes={"data": KnownVolume(True)})
    sim.execute(planned(sim, bound, decisions={"wl-0": RACK_1}))
    before = set(sim.pods())
    assert len(planned(sim, sources).placement_demands) == 1
    plan = planned(sim, sources, decisions={"wl-0": replace(RACK_1, failed=True)})
    assert plan.placement_demands == (), "it starts over, and waits for its volume"
    sim.execute(plan)
    assert not before & set(sim.pods())
    assert all(map(gates, pod_specs(sim).values()))


@pytest.mark.parametrize("known", [frozenset({"x"}), None], ids=["exists", "not known"])
def test_gang_does_not_wait_for_a_claim_that_may_exist(known: frozenset[str] | None) -> None:
    sim = a_simulator(resourceClaims=[{"name": "gpus", "resourceClaimName": "x"}])
    assert len(planned(sim, replace(SOURCES, claims=known)).placement_demands) == 1


def test_missing_right_to_list_devices_is_said() -> None:
    sim = a_simulator(resourceClaims=[CLAIM])
    plan = planned(sim, ClaimSources(templates={}, volumes={}, problem="devices: 403"))
    assert plan.placement_demands == ()
    assert [each for each in plan.intents if each.id.startswith("create Pod ")], "it has no required level"


def test_bound_volume_limits_the_nodes() -> None:
    sources = replace(SOURCES, volumes={"data": KnownVolume(True, IN_ZONE)})
    found = shapes(planned(a_simulator(volumes=[VOLUME]), sources))
    assert found["wl-0-a"].affinity == IN_ZONE
    assert found["wl-0-b"].affinity is None
    assert condition(a_simulator(volumes=[VOLUME]), sources) is None


def test_nodes_of_volume_and_affinity_must_both_match() -> None:
    rack = {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rack]}}
    sim = a_simulator(volumes=[VOLUME], affinity={"nodeAffinity": required})
    sources = replace(SOURCES, volumes={"data": KnownVolume(True, IN_ZONE)})
    expected = Term((Requirement("rack", "Exists"), *IN_ZONE[0].expressions))
    assert shapes(planned(sim, sources))["wl-0-a"].affinity == (expected,)


def test_equal_nodes_of_several_volumes_are_combined_once() -> None:
    zones = tuple(Term((Requirement("zone", "In", (zone,)),)) for zone in ("z1", "z2"))
    racks = tuple(Term((Requirement("rack", "In", (rack,)),)) for rack in ("r1", "r2"))
    names = [f"data-{i}" for i in range(6)]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    known = {name: KnownVolume(True, (zones, racks)[i % 2]) for i, name in enumerate(names)}
    found = shapes(planned(a_simulator(volumes=volumes), replace(SOURCES, volumes=known)))
    assert len(found["wl-0-a"].affinity or ()) == 4


def test_unbound_volumes_have_the_nodes_of_their_class() -> None:
    in_rack = (Term((Requirement("rack", "In", ("r1",)),)),)
    known = {"data": KnownVolume(False, in_rack)}
    sources = replace(SOURCES, volumes=known, storage_classes={"fast": IN_ZONE, "": None})
    sim = a_simulator(volumes=[VOLUME, EPHEMERAL])
    both = Term((*in_rack[0].expressions, *IN_ZONE[0].expressions))
    assert shapes(planned(sim, sources))["wl-0-a"].affinity == (both,)
    found = condition(sim, sources)
    assert found is not None
    assert (found.status, found.reason) == ("True", "VolumesNotHeld")
    assert "Not held until they are bound: volume data, volume scratch" in found.message


def test_condition_says_what_is_counted_and_what_is_not() -> None:
    claims = [
        CLAIM,
        {"name": "x", "resourceClaimTemplateName": "odd"},
        {"name": "y", "resourceClaimName": "z"},
    ]
    sim = a_simulator(resourceClaims=claims)
    found = condition(sim, replace(SOURCES, templates={"two": template(), "odd": template("odd")}))
    assert found is not None
    assert found.reason == "DevicesNotHeld"
    assert found.message == (
        "Devices of class gpu are counted, but not held against other pods; not counted and not held: "
        "claim z: pods share it, devices of class odd: its selectors are not understood. "
        "If another pod takes what is not held, the gang starts over"
    )


def test_condition_is_gone_once_the_gang_has_its_nodes() -> None:
    sim = a_simulator(resourceClaims=[CLAIM])
    assert condition(sim, SOURCES) is not None
    conditions = sim.api.get("PodGang", "wl-0")["status"]["conditions"]
    assert "PlacementUnprotected" in {each["type"] for each in conditions}
    sim.execute(planned(sim, decisions={"wl-0": RACK_1}))
    actors.run_all(sim)
    (status,) = (each.desired for each in planned(sim).status_updates if each.target.kind == "PodGang")
    types = {each.type: each.status for each in status.conditions}
    assert types["Scheduled"] == "True"
    assert "PlacementUnprotected" not in types


def test_requested_devices_are_not_held_either() -> None:
    limits = {"limits": {"example.com/gpu": "2"}}
    sim = a_simulator(containers=[{"name": "main", "image": "i", "resources": limits}])
    catalog = replace(CATALOG, extended={"example.com/gpu": "gpu"})
    assert planned(sim, replace(SOURCES, devices=None, requested=True)).placement_demands == ()
    found = condition(sim, replace(SOURCES, devices=catalog, requested=True))
    assert found is not None
    assert found.message.startswith("Devices of class gpu are counted, but not held against other pods.")
    assert condition(sim, SOURCES) is None
