"""Constraints of sets, groups and cliques on the gangs, and what becomes of them when levels come and go."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grove.api import annotations as keys
from grove.topology.constraints import Topology
from tests.plan.builders import a_set
from tests.plan.hands import run_all
from tests.plan.world import World
from tests.topology.builders import KEYS, a_topology, missing, packed

ZONE, RACK, HOST = KEYS.values()


def must(key: str) -> dict[str, Any]:
    return {"packConstraint": {"required": key}}


def a_world(cliques: str, groups: str, wishes: str, topology: Topology | None, **options: Any) -> World:
    world = World(packed(a_set(cliques, groups), wishes, **options))
    world.topology = topology
    world.settle()
    return world


def gang(world: World, name: str) -> dict[str, Any]:
    """The constraints of a gang, those of its cliques by their names, and the topology that it names."""
    found = world.api.get("PodGang", name)
    spec = found["spec"]
    told = {
        group["name"]: group["topologyConstraint"]
        for group in spec["podgroups"]
        if "topologyConstraint" in group
    }
    for field in ("topologyConstraint", "topologyConstraintGroupConfigs"):
        if field in spec:
            told[field] = spec[field]
    if name := found["metadata"].get("annotations", {}).get(keys.TOPOLOGY_NAME):
        told["topology"] = name
    return told


def test_a_base_gang_has_the_sets_constraint_one_for_each_group_replica_and_the_cliques():
    world = a_world("a b c", "x:2/2=b,c y:1=a", "zone x:rack b:host", a_topology())
    assert gang(world, "wl-0") == {
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


def test_a_scaled_gang_has_its_groups_constraint_and_no_parts():
    world = a_world("a b", "x:3/1=b", "zone x:rack b:host", a_topology())
    for number in (0, 1):
        assert gang(world, f"wl-0-x-{number}") == {
            "topology": "racks",
            "topologyConstraint": must(RACK),
            f"wl-0-x-{number + 1}-b": must(HOST),
        }


def test_a_scaled_gang_of_a_group_without_one_has_the_sets():
    world = a_world("a b", "x:2/1=b", "zone/rack", a_topology())
    expected = {"packConstraint": {"required": ZONE, "preferred": RACK}}
    assert gang(world, "wl-0-x-0") == {"topology": "racks", "topologyConstraint": expected}
    assert gang(world, "wl-0") == {"topology": "racks", "topologyConstraint": expected}


def test_a_group_that_lost_its_level_does_not_fall_back_on_the_sets():
    world = a_world("a b", "x:2/1=b", "zone x:rack", a_topology("zone host"))
    assert gang(world, "wl-0-x-0") == {}
    assert gang(world, "wl-0") == {
        "topology": "racks",
        "topologyConstraint": must(ZONE),
        "topologyConstraintGroupConfigs": [{"name": "wl-0-x-0", "podGroupNames": ["wl-0-x-0-b"]}],
    }


def test_the_topology_is_named_only_where_something_was_translated():
    world = a_world("a b", "x:2/1=b", "a:host", a_topology())
    assert gang(world, "wl-0") == {"topology": "racks", "wl-0-a": must(HOST)}
    assert gang(world, "wl-0-x-0") == {}


def test_the_old_spelling_says_the_same():
    new = a_world("a b", "x:2/1=b", "zone/rack x:rack b:host", a_topology())
    old = a_world("a b", "x:2/1=b", "zone/rack x:rack b:host", a_topology(), old_spelling=True)
    for name in ("wl-0", "wl-0-x-0"):
        assert gang(old, name) == gang(new, name) != {}


def test_a_clique_that_is_scaled_to_nothing_leaves_its_part():
    world = a_world("a:1 b:1 c:1", "x:1=b,c", "x:rack", a_topology())
    world.scale("PodClique", "wl-0-x-0-b", 0)
    world.settle()
    (part,) = gang(world, "wl-0")["topologyConstraintGroupConfigs"]
    assert part["podGroupNames"] == ["wl-0-x-0-c"]
    world.scale("PodClique", "wl-0-x-0-c", 0)
    world.settle()
    assert gang(world, "wl-0") == {}


def test_switched_off_there_are_no_constraints_no_parts_and_no_name():
    world = a_world("a b", "x:2/1=b", "zone x:rack b:host", None)
    assert gang(world, "wl-0") == gang(world, "wl-0-x-0") == {}


def test_a_topology_that_is_not_there_leaves_only_who_belongs_together():
    world = a_world("a b", "x:2/1=b", "zone x:rack b:host", missing())
    assert gang(world, "wl-0") == {
        "topologyConstraintGroupConfigs": [{"name": "wl-0-x-0", "podGroupNames": ["wl-0-x-0-b"]}]
    }
    assert gang(world, "wl-0-x-0") == {}


def test_a_name_that_a_set_carries_as_annotation_is_not_handed_on():
    body = packed(a_set("a"), "zone")
    body["metadata"]["annotations"] = {keys.TOPOLOGY_NAME: "another"}
    world = World(body)
    world.settle()
    assert gang(world, "wl-0") == {}


levels = st.lists(st.sampled_from(sorted(KEYS)), unique=True).map(" ".join)
topologies = st.one_of(st.none(), st.just(missing()), levels.map(a_topology))


@settings(deadline=None, max_examples=40)
@given(st.lists(topologies, min_size=1, max_size=4))
def test_whatever_becomes_of_the_topology_pods_stay_and_constraints_come_back(changes: list[Topology | None]):
    world = a_world("a:2 b:1", "x:2/1=b", "zone/rack x:rack/host b:host", a_topology())
    run_all(world)
    world.settle()
    pods, before = world.api.all("Pod"), [gang(world, name) for name in ("wl-0", "wl-0-x-0")]
    for topology in changes:
        world.topology = topology
        world.settle()
        known = set(topology.keys.values()) if topology else set()
        for name in ("wl-0", "wl-0-x-0"):
            told = str(gang(world, name))
            assert {key for key in KEYS.values() if key in told} <= known
            assert ("'topology': 'racks'" in told) == ("packConstraint" in told)
    world.topology = a_topology()
    world.settle()
    assert [gang(world, name) for name in ("wl-0", "wl-0-x-0")] == before
    assert world.api.all("Pod") == pods
