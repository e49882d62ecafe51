"""Which gangs are searched for in a round. A search may take half a second, and any user may have gangs for
which it does: the work of one round is limited, and the gangs that are left are decided on in the next one,
those of each namespace in turn. So releases, and the gangs of others, never wait for long.

A search that was stopped at its limit is repeated with more work. That takes seconds, so there is one at a
time, with a pause, and again those of each namespace in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from grove import timing
from grove.plan.placement.assignment import GangName
from grove.plan.placement.state import GangState, ObservedGang
from grove.topology.placement.search.state import WorkMeter

Order = Callable[[ObservedGang], tuple[Any, ...]]


class Turns:
    """The gangs that are searched for in one round."""

    def __init__(self, gangs: Sequence[ObservedGang], work: int, now: float) -> None:
        self.postponed: set[GangName] = set()
        """Those for which no work was left."""
        self.retried = _next_retry(gangs, now)
        """The gang that is searched for with more work, if it is time for one."""
        self._all = WorkMeter(work)
        self._meters: dict[GangName, WorkMeter] = {}

    @property
    def over(self) -> bool:
        """Whether no work is left."""
        return self._all.left <= 0

    def admit(self, gang: GangName) -> bool:
        """Whether a gang is searched for in this round. It may be searched for several times then."""
        if gang not in self._meters and self.over:
            self.postponed.add(gang)
            return False
        self.meter(gang)
        return True

    def limit(self, gang: GangName) -> int:
        """The limit of one search for a gang."""
        return timing.PLACEMENT_WORK * (timing.PLACEMENT_RETRY_WORK if gang == self.retried else 1)

    def meter(self, gang: GangName) -> WorkMeter:
        """The work for all searches for a gang."""
        found = self._meters.get(gang)
        if found is None:
            most = max(timing.PLACEMENT_ROUND_WORK, self.limit(gang))
            found = self._meters[gang] = WorkMeter(most, self._all)
        return found


def next_retry_at(states: Iterable[GangState]) -> float:
    """From when on the next gang may be searched for with more work."""
    last = max((state.retried_at for state in states), default=0.0)
    return last + timing.PLACEMENT_RETRY_PAUSE if last else 0.0


def in_turn(gangs: Sequence[ObservedGang], order: Order, retried: GangName | None) -> list[ObservedGang]:
    """The gangs in the order in which they are decided on. Those that were postponed go first, one of each
    namespace after another, and first of the namespace that has had no turn for longest; a search that takes
    long is the last one."""
    postponed = [gang for gang in gangs if gang.state.postponed]
    first = _by_namespace(postponed, gangs, order)
    names = {gang.state.demand.gang for gang in postponed}
    others = [gang for gang in gangs if gang.state.demand.gang not in names]
    return first + sorted(others, key=lambda gang: (gang.state.demand.gang == retried, order(gang)))


def _by_namespace(
    postponed: Iterable[ObservedGang], gangs: Iterable[ObservedGang], order: Order
) -> list[ObservedGang]:
    latest = _latest(gangs, lambda state: state.decided_at)
    ranked: list[tuple[int, float, tuple[Any, ...], ObservedGang]] = []
    count: Counter[str] = Counter()
    for gang in sorted(postponed, key=lambda each: (each.state.postponed, order(each))):
        namespace = gang.state.demand.gang.namespace
        ranked.append((count[namespace], latest[namespace], order(gang), gang))
        count[namespace] += 1
    return [gang for *_, gang in sorted(ranked, key=lambda each: each[:3])]


def _latest(gangs: Iterable[ObservedGang], at: Callable[[GangState], float]) -> dict[str, float]:
    """By namespace, the latest time of its gangs."""
    found: dict[str, float] = {}
    for gang in gangs:
        namespace = gang.state.demand.gang.namespace
        found[namespace] = max(found.get(namespace, 0.0), at(gang.state))
    return found


def _next_retry(gangs: Sequence[ObservedGang], now: float) -> GangName | None:
    states = [gang.state for gang in gangs]
    due = [state for state in states if state.waits and 0 < state.retry_at <= now]
    if not due or now < next_retry_at(states):
        return None
    latest = _latest(gangs, lambda state: state.retried_at)
    first = min(due, key=lambda state: (latest[state.demand.gang.namespace], state.retry_at, state.order))
    return first.demand.gang
