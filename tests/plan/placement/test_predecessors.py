"""Predecessors between two watches."""

from __future__ import annotations

from msgspec.structs import replace

from grove.plan.placement.assignment import PodSlot
from grove.plan.placement.demand import Demand, WantedPod
from grove.plan.placement.predecessors import with_present_predecessors
from tests.plan.placement.gangs import demand

SLOT = PodSlot("a", 0)
NODES = {"old": "h0"}


def asked(node: str = "", predecessor: str = "h0") -> Demand:
    pod = WantedPod(SLOT, "new", node, True, predecessor, "old" if predecessor else "")
    return demand("a", 1, existing={0: pod})


def predecessor(wanted: Demand, before: Demand | None, nodes: dict[str, str]) -> str:
    (pod,) = with_present_predecessors(wanted, before, lambda name: nodes.get(name, "")).pods
    return pod.predecessor


def test_predecessor_counts_while_it_uses_its_node() -> None:
    assert predecessor(asked(), None, NODES) == "h0"


def test_predecessor_that_is_gone_in_the_watch_of_all_pods() -> None:
    """Its room is free there: it must be reserved for the successor."""
    assert predecessor(asked(), None, {}) == ""


def test_predecessor_that_is_gone_in_the_watch_of_our_pods_only() -> None:
    """Its room is not free yet: it must not count twice."""
    later = asked(predecessor="")
    assert predecessor(later, asked(), NODES) == "h0"
    assert predecessor(later, asked(), {}) == ""
    assert predecessor(later, None, NODES) == ""


def test_bound_successor_has_no_predecessor() -> None:
    assert predecessor(asked(node="h1", predecessor=""), asked(), NODES) == ""


def test_demand_without_predecessors_stays_the_same_object() -> None:
    wanted = asked(predecessor="")
    assert with_present_predecessors(wanted, replace(wanted), lambda _: "") is wanted
