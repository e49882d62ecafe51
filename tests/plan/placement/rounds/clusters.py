"""A cluster with gangs on which one round of placement runs after another."""

from __future__ import annotations

from collections.abc import Mapping

from grove.plan.placement.assignment import Assignment, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang, RoundResult
from tests.plan.placement.gangs import changes, gated, used

NOW = 1000.0
AFTER = 60.0


class Cluster:
    """A cluster with gangs, round after round."""

    def __init__(self, nodes: Mapping[str, ObservedNode], *gangs: Demand, priority: int = 0) -> None:
        self.capacity = ClusterCapacity()
        self.nodes = nodes
        self.states = {each.gang.name: GangState(gated(each)) for each in gangs}
        self.priorities = dict.fromkeys(self.states, priority)
        self.result = RoundResult({})

    def add(self, wanted: Demand, priority: int = 0) -> None:
        self.states[wanted.gang.name] = GangState(wanted)
        self.priorities[wanted.gang.name] = priority

    def round(
        self, now: float, nodes: Mapping[str, ObservedNode] | None = None, nominations: str = ""
    ) -> None:
        """Run a round. `nominations`: of which gang the nominations are observed."""
        gangs = [
            ObservedGang(
                state,
                priority=self.priorities[name],
                nominations=shown_nominations(state) if name == nominations else {},
            )
            for name, state in self.states.items()
        ]
        changed = self.nodes if nodes is None else nodes
        self.result = run_round(self.capacity, changes(changed, *gangs, hold_after=AFTER), now)
        self.states |= {name.name: state for name, state in self.result.changed.items()}
        self.nodes = {}

    def held(self, gang: str) -> set[str]:
        """The nodes that are held for a gang."""
        decision = self.states[gang].decision
        return set(decision.nodes.values()) if isinstance(decision, Waiting) else set()

    def assigned(self, gang: str) -> Assignment:
        decision = self.states[gang].decision
        assert isinstance(decision, Assignment)
        return decision


def shown_nominations(state: GangState) -> dict[str, str]:
    return {f"{slot.clique}-{slot.number}": node for slot, node in state.nominations.items()}


def full(nodes: Mapping[str, ObservedNode], *free: str) -> dict[str, ObservedNode]:
    """The nodes with all GPUs in use, but for those that are free."""
    return {name: each if name in free else used(each, 8) for name, each in nodes.items()}
