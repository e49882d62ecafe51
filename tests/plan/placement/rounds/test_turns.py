"""The work of one round is limited, and gangs take turns."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.plan.placement import decision
from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand, WantedClique, WantedPod, clique_unit
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang, RoundResult
from grove.topology.placement.answers import GaveUp
from grove.topology.placement.model import PODS, PodShape, Problem, Unit
from tests.plan.placement.gangs import GPU, LEVELS, RACK, changes, demand, node, racks

NOW = 1000.0
SIZES = (17, 19, 23, 29, 31, 37, 41, 43) * 4
"""GPUs of pods that hardly fit on the nodes of a rack."""


class Rounds:
    """One round after another, each with so much work."""

    def __init__(self, nodes: dict[str, ObservedNode], *gangs: Demand, work: int) -> None:
        self._capacity, self._nodes, self._work = ClusterCapacity(), nodes, work
        self.states = {each.gang: GangState(each) for each in gangs}
        self.result = RoundResult({})

    def run(self, now: float = NOW, **more: object) -> list[str]:
        """The gangs that a round has decided on."""
        gangs = [ObservedGang(state) for state in self.states.values()]
        before, found = dict(self.states), changes(self._nodes, *gangs, work=self._work, **more)
        self.result = run_round(self._capacity, found, now)
        self._nodes = {}
        self.states |= self.result.changed
        return [name.name for name, state in self.states.items() if state.decision != before[name].decision]


def gang(name: str, namespace: str = "ns", created: str = "", gpus: int = 1) -> Demand:
    """A gang of one pod. Equal ones are refused by one search."""
    found = demand(name, 1, gpus, required=RACK, created=created)
    return replace(found, gang=GangName(namespace, name))


def test_gangs_for_which_no_work_is_left_follow_at_once() -> None:
    rounds = Rounds(racks(2, 4), gang("a"), gang("b"), work=1)
    assert rounds.run() == ["a"]
    assert rounds.result.next_at == NOW
    assert [state.postponed for state in rounds.states.values()] == [0.0, NOW]
    assert rounds.run(NOW + 1) == ["b"]
    assert [state.postponed for state in rounds.states.values()] == [0.0, 0.0]
    assert rounds.result.next_at is None


def test_time_of_a_postponed_gang_goes_on() -> None:
    rounds = Rounds(racks(2, 4), gang("a"), gang("b"), gang("c"), work=1)
    for seconds in range(2):
        rounds.run(NOW + seconds)
    assert rounds.states[GangName("ns", "c")].postponed == NOW


def test_waiting_gang_is_decided_on_although_the_change_is_over() -> None:
    """The round that reads a change may have no work left for it."""
    full = {name: ObservedNode(each.node, {0: {GPU: 8}}) for name, each in racks(1, 2).items()}
    rounds = Rounds(full, gang("a"), gang("b"), work=10**6)
    assert rounds.run() == ["a", "b"]
    assert all(isinstance(state.decision, Waiting) for state in rounds.states.values())
    rounds._nodes, rounds._work = racks(1, 2), 1
    assert rounds.run(NOW + 1) == ["a"]
    assert rounds.run(NOW + 2) == ["b"]
    assert all(isinstance(state.decision, Assignment) for state in rounds.states.values())


def test_namespaces_take_turns() -> None:
    """However many gangs a user has, those of others are decided on."""
    many = [gang(f"a{number}", "busy", f"2026-01-01T00:00:0{number}Z") for number in range(6)]
    last = gang("z", "other", "2026-01-01T00:01:00Z")
    rounds = Rounds(racks(2, 4), *many, last, work=1)
    assert [rounds.run(NOW + seconds) for seconds in range(4)] == [["a0"], ["z"], ["a1"], ["a2"]]


def hard(number: int) -> Demand:
    """A gang for which a search takes long, each another one."""
    name = f"hard{number}"
    pods = tuple(WantedPod(PodSlot(f"{name}-{i}", 0)) for i in range(len(SIZES)))
    parts = tuple(
        clique_unit(WantedClique(pod.slot.clique, 1, PodShape({GPU: size, PODS: 1, "cpu": number}), (pod,)))
        for pod, size in zip(pods, SIZES, strict=True)
    )
    unit, created = Unit(name, RACK, "", parts), "2026-01-01T00:00:00Z"
    return Demand(GangName("busy", name), unit, pods, LEVELS, created=created, constrained=True)


def test_hard_gangs_do_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 20_000
    monkeypatch.setattr(timing, "PLACEMENT_WORK", limit)
    monkeypatch.setattr(timing, "PLACEMENT_ROUND_WORK", 2 * limit)
    room = sum(SIZES) // 12 + 1
    nodes = [node(f"h{i:02}", "r0", room) for i in range(12)]
    for i, each in enumerate(nodes):
        nodes[i] = replace(each, allocatable={**each.allocatable, "cpu": 10**6})
    listed = {each.name: ObservedNode(each) for each in nodes}
    easy = gang("easy", "other", "2026-01-02T00:00:00Z")
    rounds = Rounds(listed, *map(hard, range(10)), easy, work=2 * limit)
    first = rounds.run()
    assert 1 <= len(first) <= 3, "no more than the work allows, but for the last search"
    assert "easy" not in first, "it is the youngest"
    assert "easy" in rounds.run(NOW + 1)
    for seconds in range(2, 12):
        rounds.run(NOW + seconds)
    answers = [state.decision for name, state in rounds.states.items() if name.namespace == "busy"]
    assert all(isinstance(answer, Waiting) and answer.gave_up for answer in answers)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The gangs that were searched for, with the limit of the work. No search finds anything."""
    found: list[tuple[str, int]] = []

    def give_up(_index: object, problem: Problem, work: int = 0, **_: object) -> GaveUp:
        found.append((problem.gang.name.removesuffix("-gang"), work))
        return GaveUp(work)

    monkeypatch.setattr(decision, "solve", give_up)
    return found


LONG = timing.PLACEMENT_WORK * timing.PLACEMENT_RETRY_WORK


def test_searches_with_more_work_have_a_pause(limits: list[tuple[str, int]]) -> None:
    rounds = Rounds(racks(1, 2), gang("a"), gang("b", gpus=2), work=10**6)
    rounds.run()
    assert limits == [("a", timing.PLACEMENT_WORK), ("b", timing.PLACEMENT_WORK)]
    limits.clear()
    due = NOW + timing.PLACEMENT_RETRY
    assert rounds.result.next_at == due
    rounds.run(due)
    assert limits == [("a", LONG)]
    assert rounds.result.next_at == due + timing.PLACEMENT_RETRY_PAUSE
    rounds.run(due + timing.PLACEMENT_RETRY_PAUSE - 1)
    assert limits == [("a", LONG)]
    rounds.run(due + timing.PLACEMENT_RETRY_PAUSE)
    assert limits == [("a", LONG), ("b", LONG)]


def test_searches_with_more_work_are_those_of_each_namespace(limits: list[tuple[str, int]]) -> None:
    busy = [gang(f"a{number}", "busy", gpus=1 + number) for number in range(2)]
    rounds = Rounds(racks(1, 2), *busy, gang("zz", "other", gpus=4), work=10**6)
    rounds.run()
    limits.clear()
    for number in range(4):
        rounds.run(NOW + timing.PLACEMENT_RETRY + number * timing.PLACEMENT_RETRY_PAUSE)
    assert [name for name, _ in limits] == ["a0", "zz", "a1", "zz"]


def test_incomplete_gang_whose_search_was_stopped_starts_over(limits: list[tuple[str, int]]) -> None:
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = demand("a", 2, required=RACK, existing={0: bound})
    rounds = Rounds(racks(1, 2), wanted, work=10**6)
    rounds.run()
    due = NOW + timing.HALF_BOUND_LIMIT
    assert rounds.result.next_at == due
    limits.clear()
    assert rounds.run(due) == ["a-gang"]
    found = rounds.states[wanted.gang].decision
    assert isinstance(found, Assignment)
    assert found.failed
    assert limits == []
