"""The placement key: gangs are assigned once, in request order, and release their assignment."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.keys import ReplicaKey
from grove.operator.observers.placement import PlacementState
from grove.plan.placement import Assignment, GangName, NoAssigner
from tests.plan.builders import a_set, read_set

SET = read_set(a_set("a:1"))
FIRST, SECOND = ReplicaKey("ns", "wl", 0), ReplicaKey("ns", "wl", 1)


class OneRack:
    """Has room for one gang at a time."""

    def applies_to(self, workload: PodCliqueSet) -> bool:
        return True

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:
        return None if given else Assignment({"a": {"rack": "r1"}})


def assigned(placement: PlacementState) -> set[ReplicaKey]:
    """Assign the gangs that wait, and return their replicas."""
    snapshot = placement.snapshot()
    return placement.record(snapshot.assignments()) if snapshot is not None else set()


def test_gangs_are_assigned_in_request_order() -> None:
    placement = PlacementState(OneRack())
    assert placement.request(FIRST, ["wl-0"])
    assert placement.request(SECOND, ["wl-1"])
    assert not placement.request(SECOND, ["wl-1"]), "the same request again is not new"
    assert assigned(placement) == {FIRST}
    assert placement.of(FIRST, SET) == {"wl-0": Assignment({"a": {"rack": "r1"}})}
    assert placement.of(SECOND, SET) == {}
    assert assigned(placement) == set()
    placement.forget(FIRST)
    assert assigned(placement) == {SECOND}
    assert placement.of(FIRST, SET) == {}


def test_no_assigner_assigns_nothing_and_blocks_no_gang() -> None:
    placement = PlacementState(NoAssigner())
    assert placement.of(FIRST, SET) is None
    assert assigned(placement) == set()
