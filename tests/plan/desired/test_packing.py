"""Topology constraints of sets, groups and cliques on gangs, while levels are removed and added."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grove.api.naming import annotations as keys
from grove.topology.constraints import ResolvedTopology
from tests.plan.builders import a_set
from tests.plan.simulator.actors import run_all
from tests.plan.simulator.simulator import Simulator
from tests.topology.builders import KEYS, a_topology, missing, packed

ZONE, RACK, HOST = KEYS.values()


def must(key: str) -> dict[str, Any]:
    return {"packConstraint": {"required": key}}


def a_simulator(
    cliques: str, groups: str, wishes: str, topology: ResolvedTopology | None, **options: Any
) -> Simulator:
    sim = Simulator(packed(a_set(cliques, groups), wishes, **options))
    sim.topology = topology
    sim.settle()
    return sim


def gang(sim: Simulator, name: str) -> dict[str, Any]:
    """The constraints of a gang, those of its cliques by their names, and the topology that it names."""
    found = sim.api.get("PodGang", name)
    spec = found["spec"]
    reported = {
        group["name"]: group["topologyConstraint"]
        for group in spec["podgroups"]
        if "topologyConstraint" in group
    }
    for field in ("topologyConstraint", "topologyConstraintGroupConfigs"):
        if field in spec:
            reported[field] = spec[field]
    if name := found["metadata"].get("annotations", {}).get(keys.TOPOLOGY_NAME):
        reported["topology"] = name
    return reported


def test_base_gang_has_set_group_and_clique_constraints():
    sim = a_simulator("a b c", "x:2/2=b,c y:1=a", "zone x:rack b:host", a_topology())
    assert gang(sim, "wl-0") == {
        "topology": "racks",
        "topologyConstraint": must(ZONE),
        "topologyConstraintGroupConfigs": [
            {
                "name": f"wl-0-x-{replica}",
                "podGroupNames": [f"wl-0-x-{replica}-b", f"wl-0-x-{replica}-c"],
                "topologyConstraint": must(RACK),
            }
            for replica in (0, 1)
        ],
        "wl-0-x-0-b": must(HOST),
        "wl-0-x-1-b": must(HOST),
    }


def test_scaled_gang_has_group_constraint_and_no_parts():
    sim = a_simulator("a b", "x:3/1=b", "zone x:rack b:host", a_topology())
    for number in (0, 1):
        assert gang(sim, f"wl-0-x-{number}") == {
            "topology": "racks",
            "topologyConstraint": must(RACK),
            f"wl-0-x-{number + 1}-b": must(HOST),
        }


def test_scaled_gang_of_unconstrained_group_has_set_constraint():
    sim = a_simulator("a b", "x:2/1=b", "zone/rack", a_topology())
    expected = {"packConstraint": {"required": ZONE, "preferred": RACK}}
    assert gang(sim, "wl-0-x-0") == {"topology": "racks", "topologyConstraint": expected}
    assert gang(sim, "wl-0") == {"topology": "racks", "topologyConstraint": expected}


def test_group_with_unavailable_level_has_no_set_constraint():
    sim = a_simulator("a b", "x:2/1=b", "zone x:rack", a_topology("zone host"))
    assert gang(sim, "wl-0-x-0") == {}
    assert gang(sim, "wl-0") == {
        "topology": "racks",
        "topologyConstraint": must(ZONE),
        "topologyConstraintGroupConfigs": [{"name": "wl-0-x-0", "podGroupNames": ["wl-0-x-0-b"]}],
    }


def test_topology_name_only_with_a_translated_constraint():
    sim = a_simulator("a b", "x:2/1=b", "a:host", a_topology())
    assert gang(sim, "wl-0") == {"topology": "racks", "wl-0-a": must(HOST)}
    assert gang(sim, "wl-0-x-0") == {}


def test_deprecated_field_gives_same_constraint():
    new = a_simulator("a b", "x:2/1=b", "zone/rack x:rack b:host", a_topology())
    old = a_simulator("a b", "x:2/1=b", "zone/rack x:rack b:host", a_topology(), old_spelling=True)
    for name in ("wl-0", "wl-0-x-0"):
        assert gang(old, name) == gang(new, name) != {}


def test_clique_scaled_to_0_leaves_its_group_constraint():
    sim = a_simulator("a:1 b:1 c:1", "x:1=b,c", "x:rack", a_topology())
    sim.scale("PodClique", "wl-0-x-0-b", 0)
    sim.settle()
    (part,) = gang(sim, "wl-0")["topologyConstraintGroupConfigs"]
    assert part["podGroupNames"] == ["wl-0-x-0-c"]
    sim.scale("PodClique", "wl-0-x-0-c", 0)
    sim.settle()
    assert gang(sim, "wl-0") == {}


def test_constraints_disabled_gives_no_packing_and_no_name():
    sim = a_simulator("a b", "x:2/1=b", "zone x:rack b:host", None)
    assert gang(sim, "wl-0") == gang(sim, "wl-0-x-0") == {}


def test_missing_topology_keeps_only_group_membership():
    sim = a_simulator("a b", "x:2/1=b", "zone x:rack b:host", missing())
    assert gang(sim, "wl-0") == {
        "topologyConstraintGroupConfigs": [{"name": "wl-0-x-0", "podGroupNames": ["wl-0-x-0-b"]}]
    }
    assert gang(sim, "wl-0-x-0") == {}


def test_topology_annotation_of_set_is_not_inherited():
    body = packed(a_set("a"), "zone")
    body["metadata"]["annotations"] = {keys.TOPOLOGY_NAME: "another"}
    sim = Simulator(body)
    sim.settle()
    assert gang(sim, "wl-0") == {}


levels = st.lists(st.sampled_from(sorted(KEYS)), unique=True).map(" ".join)
topologies = st.one_of(st.none(), st.just(missing()), levels.map(a_topology))


@settings(deadline=None, max_examples=40)
@given(st.lists(topologies, min_size=1, max_size=4))
def test_topology_changes_keep_pods_and_restore_constraints(
    changes: list[ResolvedTopology | None],
):
    sim = a_simulator("a:2 b:1", "x:2/1=b", "zone/rack x:rack/host b:host", a_topology())
    run_all(sim)
    sim.settle()
    pods, before = sim.api.all("Pod"), [gang(sim, name) for name in ("wl-0", "wl-0-x-0")]
    for topology in changes:
        sim.topology = topology
        sim.settle()
        known = set(topology.keys.values()) if topology else set()
        for name in ("wl-0", "wl-0-x-0"):
            reported = str(gang(sim, name))
            assert {key for key in KEYS.values() if key in reported} <= known
            assert ("'topology': 'racks'" in reported) == ("packConstraint" in reported)
    sim.topology = a_topology()
    sim.settle()
    assert [gang(sim, name) for name in ("wl-0", "wl-0-x-0")] == before
    assert sim.api.all("Pod") == pods
