"""Free slots of accelerators by level."""

from __future__ import annotations

from grove.topology.placement.capacity import free_slots
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import NodeUse
from tests.topology.placement.builders import GPU, LEVELS, a_node, racks, used


def slots(index: ClusterIndex) -> dict[str, dict[int, int]]:
    return {each.level: each.slots for each in free_slots(index, GPU, (1, 8, 16, 32))}


def test_slots_are_counted_inside_domains() -> None:
    index = ClusterIndex(LEVELS, racks("ab"), {"a-1-1": used(3)})
    assert slots(index) == {"zone": {1: 61, 8: 7, 16: 3, 32: 1}, "rack": {1: 61, 8: 7, 16: 3, 32: 0}}


def test_scattered_accelerators_are_no_slot() -> None:
    index = ClusterIndex(LEVELS, racks("a", 1, 4), {f"a-1-{i}": used(4) for i in (1, 2, 3)})
    assert slots(index)["rack"] == {1: 20, 8: 1, 16: 0, 32: 0}


def test_last_pod_of_a_slot_takes_part_of_a_node() -> None:
    index = ClusterIndex(LEVELS, racks("a", 1, 4), {"a-1-1": used(4)})
    assert free_slots(index, GPU, (12,))[-1].slots == {12: 2}


def test_unusable_and_over_committed_nodes_have_no_slots() -> None:
    nodes = [
        a_node("a/1/n1", ready=False),
        a_node("a/1/n2", unschedulable=True),
        a_node("a/1/n3"),
        a_node("a/1/n4", 4),
    ]
    index = ClusterIndex(LEVELS, nodes, {"n3": NodeUse({0: {GPU: 12}})})
    assert slots(index)["rack"] == {1: 4, 8: 0, 16: 0, 32: 0}


def test_cluster_without_the_resource_has_no_slots() -> None:
    assert slots(ClusterIndex(LEVELS))["zone"] == {1: 0, 8: 0, 16: 0, 32: 0}
