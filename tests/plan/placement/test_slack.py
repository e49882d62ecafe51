"""Slack, compared with a count of each node by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.plan.placement.slack import has_slack, pods_in_flight
from grove.topology.placement.answers import Placed
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Amounts, NodeUse, Pod, PodShape, Taint, Toleration, Unit
from tests.plan.placement.gangs import GPU, LEVELS, RACK, node

TAINT = Taint("dedicated")
SHAPES = (
    PodShape({GPU: 1, "pods": 1}),
    PodShape({GPU: 2, "pods": 1}, tolerations=(Toleration("dedicated", "Exists"),)),
    PodShape({GPU: 0, "pods": 1}, {RACK: "r0"}),
)
REQUESTS = st.sampled_from(({"pods": 1}, {GPU: 1, "pods": 1}, {GPU: 3, "pods": 1}, {"other": 0, "pods": 1}))
RARE = st.sampled_from(({GPU: 1, "pods": 1}, {"other": 1, "pods": 1}))


@st.composite
def clusters(draw: st.DrawFn) -> ClusterIndex:
    nodes, use = [], {}
    for number in range(draw(st.integers(1, 5))):
        found = node(f"n{number}", draw(st.sampled_from(("r0", "r1"))), draw(st.integers(0, 6)))
        taints = (TAINT,) if draw(st.booleans()) else ()
        nodes.append(replace(found, taints=taints, unschedulable=draw(st.integers(0, 9)) == 0))
        use[found.name] = NodeUse({0: {GPU: draw(st.integers(0, 3))}}, {"pods": draw(st.integers(0, 110))})
    return ClusterIndex(LEVELS, nodes, use)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    def pods(clique: str) -> tuple[Pod, ...]:
        shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
        return tuple(
            Pod(f"{clique}-{i}", shape, node=draw(st.sampled_from(("", "", "n0"))))
            for i, shape in enumerate(shapes)
        )

    parts = tuple(Unit(name, draw(st.sampled_from(("", RACK))), pods=pods(name)) for name in "ab")
    return Unit("gang", draw(st.sampled_from(("", RACK))), parts=parts)


def room(index: ClusterIndex, domain: tuple[str, ...], unit: Unit, in_flight: list[Amounts]) -> bool:
    """Each pod as large as the largest of all, on nodes that admit all shapes."""
    pods = [pod for each in (unit, *unit.parts) for pod in each.pods]
    largest: dict[str, int] = {}
    for amounts in (*(pod.shape.requests for pod in pods), *in_flight):
        for resource, amount in amounts.items():
            largest[resource] = max(largest.get(resource, 0), amount)
    asked = {resource: amount for resource, amount in largest.items() if amount}
    count = len(in_flight) + sum(not pod.node for pod in pods)
    admitting = [
        i
        for i in index.members.get(domain, ())
        if not any(rejection(pod.shape, index.node(i)) for pod in pods)
    ]
    if not admitting or not asked.keys() <= index.dims.keys():
        return False
    free = [index.actual.free[i] for i in admitting]
    slots = (min(each[index.dims[name]] // amount for name, amount in asked.items()) for each in free)
    return sum(max(0, each) for each in slots) >= count


@given(clusters(), units(), st.lists(REQUESTS, max_size=4), st.lists(RARE, max_size=1), st.booleans())
def test_slack_is_room_in_each_domain(
    index: ClusterIndex, unit: Unit, common: list[Amounts], rare: list[Amounts], second: bool
) -> None:
    in_flight = [*common, *rare]
    rack = ("b0", "r1" if second else "r0")
    placed = Placed({}, dict.fromkeys(("gang", "a", "b"), rack), 1.0, True, ())
    required = [each for each in (unit, *unit.parts) if each.required]
    domains = [(each, rack) for each in required] or [(unit, CLUSTER)]
    expected = all(room(index, domain, each, in_flight) for each, domain in domains)
    assert has_slack(index, unit, placed, pods_in_flight(in_flight)) == expected


def test_bound_pods_need_no_slack_on_a_full_node() -> None:
    full = NodeUse({0: {GPU: 8}})
    unit = Unit("gang", RACK, pods=(Pod("a", SHAPES[0], node="n0"),))
    placed = Placed({}, {"gang": ("b0", "r0")}, 1.0, True, ())
    assert has_slack(ClusterIndex(LEVELS, [node("n0", "r0")], {"n0": full}), unit, placed, pods_in_flight(()))
