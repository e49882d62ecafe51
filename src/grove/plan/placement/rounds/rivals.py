"""Gangs that are in each other's way: nominations that give way to other gangs, and nominations that do not
apply any more but still count for the scheduler. Both are kept so that a gang finds its own without a look at
all others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator

from grove.plan.placement.assignment import Assignment, GangName, Pins
from grove.plan.placement.release import outdated_nominations
from grove.plan.placement.state import GangState, ObservedGang


class Rivals:
    """The gangs that are nominated, or hold nodes, and are not released."""

    def __init__(self, gangs: Iterable[ObservedGang]) -> None:
        self._assigned, self._holding = _ByPriority(), _ByPriority()
        self._held: dict[GangName, Pins] = {}
        """The labels of the domains that are held."""
        for gang in gangs:
            self.update(gang, gang.state)

    def update(self, gang: ObservedGang, state: GangState) -> None:
        """The state of a gang has changed."""
        nominated, decision = bool(state.nominations), state.decision
        self._assigned.set(gang, nominated and isinstance(decision, Assignment) and decision.gated)
        # The nodes stay reserved until it is decided on again.
        holds = decision is None and state.hold is not None
        self._holding.set(gang, (nominated and state.waits) or holds)
        if state.hold is not None:
            self._held[state.demand.gang] = dict(zip(state.demand.levels, state.hold.domain, strict=False))

    def of(self, gang: ObservedGang) -> Iterator[GangName]:
        """Those that give way to a gang: to a higher priority, and a hold also to the replacement of pods in
        its domain."""
        yield from self._assigned.below(gang.priority)
        yield from self._holding.below(gang.priority)
        yield from self.holds_before(gang)

    def holds_before(self, gang: ObservedGang) -> Iterator[GangName]:
        """The holds of the same priority that give way to a gang: where its pods are replaced."""
        demand, holding = gang.state.demand, self._holding.of(gang.priority)
        if not holding or not demand.replaces_pods:
            return
        former = demand.former_domains
        for name in holding:
            held = self._held.get(name, {})
            if name != demand.gang and any(_overlap(held, domain) for domain in former):
                yield name


def _overlap(one: Pins, other: Pins) -> bool:
    """Whether a node may be in both domains. An empty one is the whole cluster."""
    return all(other.get(key, value) == value for key, value in one.items())


class _ByPriority:
    """Gangs in the order of their priorities."""

    def __init__(self) -> None:
        self._priorities: list[int] = []
        self._gangs: dict[int, set[GangName]] = {}

    def set(self, gang: ObservedGang, listed: bool) -> None:
        """List a gang, or do not list it any more."""
        priority, name = gang.priority, gang.state.demand.gang
        found = self._gangs.get(priority)
        if listed and found is None:
            insort(self._priorities, priority)
            self._gangs[priority] = {name}
        elif found is not None and listed:
            found.add(name)
        elif found is not None:
            found.discard(name)
            if not found:
                del self._gangs[priority], self._priorities[bisect_left(self._priorities, priority)]

    def below(self, priority: int) -> Iterator[GangName]:
        for each in self._priorities[: bisect_left(self._priorities, priority)]:
            yield from self._gangs[each]

    def of(self, priority: int) -> Collection[GangName]:
        return self._gangs.get(priority, ())


class OutdatedNominations:
    """The nodes that pods of gangs are still nominated to although the nodes were given to others since. The
    scheduler counts them against pods of the same or a lower priority."""

    def __init__(self, gangs: Iterable[ObservedGang]) -> None:
        self._gangs = gangs
        self._by_node: dict[str, list[tuple[int, GangName]]] | None = None

    def in_the_way(self, gang: ObservedGang) -> bool:
        """Whether another gang is in the way of the nominations of a gang."""
        if self._by_node is None:
            self._by_node = self._read()
        name = gang.state.demand.gang
        return any(
            priority >= gang.priority and other != name
            for node in set(gang.state.nominations.values())
            for priority, other in self._by_node.get(node, ())
        )

    def _read(self) -> dict[str, list[tuple[int, GangName]]]:
        """By node, the two gangs of the highest priority: one of them is another gang."""
        found: dict[str, list[tuple[int, GangName]]] = {}
        for gang in self._gangs:
            state = gang.state
            for node in outdated_nominations(state.demand, state.decision, gang.nominations):
                first = (*found.get(node, ()), (gang.priority, state.demand.gang))
                found[node] = sorted(first, reverse=True)[:2]
        return found
