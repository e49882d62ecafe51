"""Equal gangs are refused by one search, with the same decisions as without that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.plan.placement import decision
from grove.plan.placement.assignment import GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand, WantedPod
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang, RoundResult
from grove.topology.placement.refusals import Refusals, units_key
from tests.plan.placement.gangs import BLOCK, GPU, RACK, asks, changes, demand, racks, used

NOW = 1000.0
AFTER = 10.0


def full() -> dict[str, ObservedNode]:
    return {name: used(each, 8, priority=9) for name, each in racks(2, 2).items()}


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    solved: list[object] = []
    solve = decision.solve
    monkeypatch.setattr(
        decision, "solve", lambda *given, **more: (solved.append(given), solve(*given, **more))[1]
    )
    return solved


def message(result: RoundResult, name: str) -> str:
    found = result.changed[GangName("ns", f"{name}-gang")].decision
    assert isinstance(found, Waiting)
    return found.message


def test_equal_gangs_are_refused_by_one_search(monkeypatch) -> None:
    solved = count_searches(monkeypatch)
    gangs = [asks(demand(name, 2, required=RACK), priority=number) for number, name in enumerate("abcdef")]
    result = run_round(ClusterCapacity(), changes(full(), *gangs), NOW)
    assert len(solved) == 1
    assert len(result.changed) == 6


def test_refusal_names_the_units_of_the_gang_itself() -> None:
    gangs = [asks(demand(name, 3, required=RACK)) for name in ("first", "second")]
    result = run_round(ClusterCapacity(), changes(full(), *gangs), NOW)
    assert "first-gang" in message(result, "first")
    assert message(result, "second") == message(result, "first").replace("first", "second")


@pytest.mark.parametrize(
    "other",
    [
        demand("b", 2, 4, required=RACK),
        demand("b", 3, required=RACK),
        demand("b", 2, required=BLOCK),
        demand("b", 2, required=RACK, preferred=RACK),
        demand("b", 2, required=RACK, pinned={"b": {RACK: "r1"}}),
        demand("b", 3, minimum=2, required=RACK, existing={0: WantedPod(PodSlot("b", 0), "b-0", "r0-h0")}),
        replace(demand("b", 2, required=RACK), further=(demand("c", 1).unit,)),
    ],
    ids=["requests", "count", "level", "preferred", "pinned", "bound", "further"],
)
def test_other_gangs_are_searched_for(monkeypatch, other: Demand) -> None:
    solved = count_searches(monkeypatch)
    run_round(ClusterCapacity(), changes(full(), asks(demand("a", 2, required=RACK))), NOW)
    alone, solved[:] = len(solved), []
    run_round(ClusterCapacity(), changes(full(), asks(demand("a", 2, required=RACK)), asks(other)), NOW)
    assert len(solved) > alone


def test_key_of_units_has_no_names() -> None:
    assert units_key([demand("a", 2).unit]) == units_key([demand("b", 2).unit])


@st.composite
def demands(draw: st.DrawFn, name: str) -> Demand:
    bound = WantedPod(PodSlot(name, 0), f"{name}-0", draw(st.sampled_from(("r0-h0", "r1-h1"))), gated=False)
    pinned = {name: {BLOCK: "b0", RACK: draw(st.sampled_from(("r0", "r1")))}}
    return demand(
        name,
        draw(st.integers(1, 3)),
        draw(st.sampled_from((2, 8))),
        minimum=draw(st.sampled_from((None, 1))),
        required=draw(st.sampled_from(("", RACK))),
        existing={0: bound} if draw(st.integers(0, 3)) == 0 else {},
        pinned=pinned if draw(st.integers(0, 3)) == 0 else {},
        created=draw(st.sampled_from("123")),
    )


@st.composite
def uses(draw: st.DrawFn) -> dict[str, ObservedNode]:
    return {
        name: ObservedNode(each.node, {priority: {GPU: draw(st.integers(0, 4))} for priority in (0, 2)})
        for name, each in racks(2, 2).items()
    }


@given(st.data())
def test_decisions_are_those_of_separate_searches(data: st.DataObject) -> None:
    """Several rounds with and without what was refused before in the same round."""
    names = [f"g{number}" for number in range(data.draw(st.integers(1, 5)))]
    wanted = [data.draw(demands(name)) for name in names]
    priorities = [data.draw(st.integers(0, 3)) for _ in names]
    steps = [(data.draw(uses()), NOW + step * AFTER) for step in range(3)]
    remembered, separate = ClusterCapacity(), ClusterCapacity()
    states = {each.gang: GangState(each) for each in wanted}
    for nodes, now in steps:
        gangs = [
            ObservedGang(state, priority=priority)
            for state, priority in zip(states.values(), priorities, strict=True)
        ]
        seen = changes(nodes, *gangs, hold_after=AFTER)
        found = run_round(remembered, seen, now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Refusals, "find", lambda *_: None)
            assert run_round(separate, seen, now) == found
        states |= found.changed
