"""Gangs that are in each other's way, compared with what that means for each pair of gangs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.plan.placement.assignment import Assignment, Decision, GangName, PodSlot, Waiting
from grove.plan.placement.demand import WantedPod
from grove.plan.placement.release import outdated_nominations
from grove.plan.placement.rounds.rivals import OutdatedNominations, Rivals
from grove.plan.placement.state import GangState, Hold, ObservedGang
from tests.plan.placement.gangs import RACK, demand, gated

NODES = st.sampled_from(("n0", "n1", "n2"))
RACKS = st.sampled_from(("r0", "r1"))
PRIORITIES = st.integers(0, 3)


@st.composite
def gangs(draw: st.DrawFn) -> list[ObservedGang]:
    """Gangs of two pods in all states, with priorities that are often equal."""
    count = draw(st.integers(0, 6))
    return [draw(gang(f"g{number}")) for number in range(count)]


@st.composite
def gang(draw: st.DrawFn, name: str) -> ObservedGang:
    bound = {0: WantedPod(PodSlot(name, 0), f"{name}-0", "n0", gated=False)} if draw(st.booleans()) else {}
    pins = {name: {RACK: draw(RACKS)}} if draw(st.booleans()) else {}
    wanted = replace(demand(name, 2, existing=bound, pinned=pins), was_scheduled=draw(st.booleans()))
    nodes = draw(st.dictionaries(st.sampled_from([PodSlot(name, 0), PodSlot(name, 1)]), NODES))
    decisions: list[Decision | None] = [
        None,
        Waiting("full"),
        Waiting("held", nodes=nodes),
        Assignment(nodes=nodes),
        Assignment(nodes=nodes, nominated=True),
        Assignment(nodes=nodes, nominated=True, released=True),
        Assignment(nodes=nodes, nominated=True, released=True, preempting=True),
    ]
    shown = draw(st.dictionaries(st.sampled_from([f"{name}-0", f"{name}-1"]), NODES))
    decision = draw(st.sampled_from(decisions))
    hold = Hold(("b0", draw(RACKS)), nodes, 0.0) if draw(st.booleans()) else None
    waits = decision is None or isinstance(decision, Waiting)
    state = GangState(gated(wanted), decision, hold=hold if waits else None)
    return ObservedGang(state, nominations=shown, priority=draw(PRIORITIES))


def gives_way(rival: ObservedGang, to: ObservedGang) -> bool:
    state, decision = rival.state, rival.state.decision
    holds = (state.waits and state.nominations) or (decision is None and state.hold)
    assigned = state.nominations and isinstance(decision, Assignment) and not decision.released
    if rival is to or not (holds or assigned):
        return False
    if holds and replaces_pods_in(to, state.hold.domain[1] if state.hold else ""):
        return rival.priority <= to.priority
    return rival.priority < to.priority


def replaces_pods_in(gang: ObservedGang, rack: str) -> bool:
    """Whether pods of a gang that has run may be replaced in a rack; empty: anywhere."""
    wanted = gang.state.demand
    if any(pod.node for pod in wanted.pods):
        return True
    pins = wanted.pinned.get(name_of(gang).name.removesuffix("-gang"), {})
    return wanted.was_scheduled and rack in ("", pins.get(RACK, rack))


def name_of(each: ObservedGang) -> GangName:
    return each.state.demand.gang


@given(gangs())
def test_rivals_are_those_that_give_way(found: list[ObservedGang]) -> None:
    rivals = Rivals(found)
    for each in found:
        expected = {name_of(other) for other in found if gives_way(other, each)}
        listed = list(rivals.of(each))
        assert set(listed) == expected
        assert len(listed) == len(expected)


@given(gangs(), st.data())
def test_rivals_follow_a_changed_state(found: list[ObservedGang], data: st.DataObject) -> None:
    rivals = Rivals(found)
    changed = [replace(each, state=data.draw(gang(name_of(each).name[:2])).state) for each in found]
    for each in changed:
        rivals.update(each, each.state)
    for each in changed:
        assert set(rivals.of(each)) == {name_of(other) for other in changed if gives_way(other, each)}


@given(gangs())
def test_nominations_in_the_way_are_those_of_any_other_gang(found: list[ObservedGang]) -> None:
    outdated = OutdatedNominations(found)
    for each in found:
        nodes = set(each.state.nominations.values())
        expected = any(
            other is not each
            and other.priority >= each.priority
            and nodes & outdated_nominations(other.state.demand, other.state.decision, other.nominations)
            for other in found
        )
        assert outdated.in_the_way(each) == expected


def test_other_gang_is_in_the_way_beside_an_own_nomination() -> None:
    """Both pods of a gang are nominated to one node, which only the first was given; so is one of another."""
    nodes = {PodSlot("b", 0): "n0", PodSlot("b", 1): "n1"}
    own = ObservedGang(
        GangState(gated(demand("b", 2)), Assignment(nodes=nodes, nominated=True)),
        nominations={"b-0": "n0", "b-1": "n0"},
        priority=2,
    )
    other = ObservedGang(
        GangState(gated(demand("a", 1)), Waiting("full")), nominations={"a-0": "n0"}, priority=2
    )
    assert OutdatedNominations([own, other]).in_the_way(own)
    assert OutdatedNominations([other, own]).in_the_way(own)
    assert not OutdatedNominations([own]).in_the_way(own)
