"""The nodes of the cluster with reservations: what a search reads, and when its answer is the same."""

from __future__ import annotations

from grove.plan.placement.assignment import GangName
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from tests.plan.placement.gangs import GPU, LEVELS, racks, used

A, B = GangName("ns", "a"), GangName("ns", "b")


def capacity() -> ClusterCapacity:
    found = ClusterCapacity()
    found.observe(racks(1, 2))
    return found


def free(found: ClusterCapacity, node: str) -> int:
    index = found.index(LEVELS)
    return index.actual.free[index.ids[node]][index.dims[GPU]]


def test_index_has_the_reservations_of_all_gangs() -> None:
    found = capacity()
    assert free(found, "r0-h0") == 8
    found.reserve(A, {"r0-h0": {GPU: 1}, "r0-h1": {GPU: 1}})
    found.reserve(B, {"r0-h0": {GPU: 2}})
    assert (free(found, "r0-h0"), free(found, "r0-h1")) == (5, 7)
    found.reserve(A, {"r0-h1": {GPU: 4}})
    assert (free(found, "r0-h0"), free(found, "r0-h1")) == (6, 4)


def test_gangs_are_left_out_for_a_while() -> None:
    found = capacity()
    found.reserve(A, {"r0-h0": {GPU: 1}})
    found.reserve(B, {"r0-h0": {GPU: 2}})
    before = found.fingerprint
    with found.without([A, GangName("ns", "unknown")]):
        assert free(found, "r0-h0") == 6
        assert found.fingerprint != before
    assert free(found, "r0-h0") == 5
    assert found.fingerprint == before


def test_fingerprint_differs_where_nodes_or_reservations_do() -> None:
    found = capacity()
    seen = {found.fingerprint}
    for amounts in ({"r0-h0": {GPU: 1}}, {"r0-h1": {GPU: 1}}, {"r0-h0": {GPU: 2}}, {"r0-h0": {"pods": 1}}):
        found.reserve(A, amounts)
        seen.add(found.fingerprint)
    found.reserve(A, {})
    found.reserve(B, {"r0-h0": {GPU: 1}})
    seen.add(found.fingerprint)
    found.reserve(B, {})
    found.observe({"r0-h0": used(racks(1, 1)["r0-h0"], 1)})
    seen.add(found.fingerprint)
    assert len(seen) == 7


def test_preemption_limit_is_the_same_for_the_same_victims() -> None:
    found = capacity()
    assert found.preemption_limit(5) is None
    found.observe({"r0-h0": used(racks(1, 1)["r0-h0"], 1, priority=3)})
    found.observe({"r0-h1": used(racks(1, 2)["r0-h1"], 1, priority=7)})
    limits = {priority: found.preemption_limit(priority) for priority in (3, 4, 7, 8, 100)}
    assert limits == {3: None, 4: 7, 7: 7, 8: 8, 100: 8}
    found.observe({"r0-h1": ObservedNode(None)})
    assert found.preemption_limit(100) == 4
