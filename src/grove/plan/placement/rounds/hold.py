"""Holds nodes for a gang that waits for long: its pods are nominated to nodes although these are full, so
that room that gets free there is not taken by smaller gangs and pods one after another.

A hold needs a domain that the gang would fit into if it were empty. Of such domains the one with the most
free room is chosen, and in it as few nodes as possible that still have to get free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, GangName, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import asked_unit, reservations, usable_by
from grove.plan.placement.demand import Demand, pod_name, walk
from grove.plan.placement.domain_members import NodesByDomain, partitions_of
from grove.plan.placement.pins import kept_pins, pinned_unit, with_existing_pins
from grove.plan.placement.rounds.next_state import Round
from grove.plan.placement.state import GangState, Hold, ObservedGang
from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import CLUSTER, Amounts, Domain, Problem, Unit
from grove.topology.placement.refusals import units_key
from grove.topology.placement.search.state import WorkMeter
from grove.topology.placement.solve import solve


def keep_hold(capacity: ClusterCapacity, gang: ObservedGang, state: GangState, now: float) -> GangState:
    """The state of a gang after a decision: with the nodes that are held for it as long as it waits, unless
    the hold is over or the nodes were given to others. `gang` is as it was before the decision."""
    hold, demand = state.hold, state.demand
    if isinstance(state.decision, Assignment) and not state.decision.gated:
        return replace(state, hold=None, hold_from=0.0, holds=0) if state.holds or state.hold_from else state
    if hold is None or not isinstance(state.decision, Waiting):
        return state  # a nominated gang falls back to its hold if its place is taken
    if hold.until > now and hold.nodes.keys() <= {pod.slot for pod in demand.unbound}:
        capacity.reserve(demand.gang, reservations(demand, gang.requests, hold.nodes))
        if capacity.can_hold(demand.gang, usable_by(demand, hold.nodes)):
            return _held(state, hold)
    capacity.reserve(demand.gang, {})
    return replace(state, hold=None)


def grant_holds(
    current: Round, states: Mapping[GangName, GangState], *, ended: bool
) -> dict[GangName, GangState]:
    """Hold nodes for gangs that have waited for long enough. Those for which nodes were held less often come
    first, so that gangs take turns. `ended`: a hold has ended, so that other gangs may find nodes now. A gang
    whose search fails by a bug gets no hold, so that all others get theirs."""
    capacity, changes, now = current.capacity, current.changes, current.now
    taken = {state.hold.domain for state in states.values() if state.hold is not None}
    waiting = [
        (gang, state)
        for gang in changes.gangs
        if (state := states[gang.state.demand.gang]).waits
        and state.fits_if_empty
        and state.hold is None
        and now >= state.since + changes.hold_after
        and (ended or now >= state.hold_from)
    ]
    changed: dict[GangName, GangState] = {}
    search = _Search(current, taken)
    for gang, state in sorted(waiting, key=lambda each: (each[1].holds, -each[0].priority, *each[1].order)):
        demand = state.demand
        try:
            hold = search.hold(gang, demand)
        except Exception as bug:
            hold, current.unexpected[demand.gang] = None, bug
        if hold is _LATER:
            changed[demand.gang] = replace(state, hold_from=min(state.hold_from, now))
        elif hold is None:
            changed[demand.gang] = replace(state, hold_from=now + changes.hold_after)
        else:
            capacity.reserve(demand.gang, reservations(demand, gang.requests, hold.nodes))
            changed[demand.gang] = _held(replace(state, hold=hold, holds=state.holds + 1), hold)
    return changed


_LATER = Hold((), {}, 0.0)
"""Not searched for in this round."""


class _Search:
    """The searches for holds in one round: their number is limited, and gangs of a kind that found none are
    not searched for again."""

    def __init__(self, current: Round, taken: set[Domain]) -> None:
        self._capacity, self._members, self._taken = current.capacity, current.members, taken
        self._turns = current.turns
        self._until = current.now + timing.HOLD_LIMIT
        self._searches, self._refused = 0, set[Hashable]()

    def hold(self, gang: ObservedGang, demand: Demand) -> Hold | None:
        """The hold for a gang; None if there is none, `_LATER` after too many searches."""
        nodes = self._members.of(demand)
        kind = _kind(self._capacity, demand, gang.requests, nodes)
        if kind in self._refused:
            return None
        if self._searches == timing.HOLD_SEARCHES or self._turns.over:
            return _LATER
        self._searches += 1
        meter = self._turns.meter(demand.gang)
        hold = find_hold(self._capacity, demand, gang.requests, self._taken, self._until, nodes, meter)
        if hold is None:
            self._refused.add(kind)
        else:
            self._taken.add(hold.domain)
        return hold


def _kind(
    capacity: ClusterCapacity, demand: Demand, requests: Mapping[str, Amounts], members: NodesByDomain
) -> Hashable:
    """Equal for gangs of which none finds a hold if one of them does not."""
    index = capacity.domains(demand.levels)
    demand = with_existing_pins(index, demand)
    unit = asked_unit(index, demand, requests)
    partitions = partitions_of(index, unit, demand, members)
    return demand.levels, units_key((unit, pinned_unit(unit, kept_pins(unit, demand)))), partitions


def _held(state: GangState, hold: Hold) -> GangState:
    assert isinstance(state.decision, Waiting)
    waiting = state.decision
    message, reason = f"{_message(hold)}; {waiting.message}", waiting.reason
    reason = replace(reason, message=message) if reason is not None else None
    return replace(state, decision=replace(waiting, message=message, nodes=hold.nodes, reason=reason))


def _message(hold: Hold) -> str:
    """What is held, in one line for users."""
    names = sorted(set(hold.nodes.values()))
    more = f" and {len(names) - timing.HELD_NODES_SHOWN} more" if len(names) > timing.HELD_NODES_SHOWN else ""
    return f"held: waits for room on {', '.join(names[: timing.HELD_NODES_SHOWN])}{more}"


def find_hold(
    capacity: ClusterCapacity,
    demand: Demand,
    requests: Mapping[str, Amounts],
    taken: Collection[Domain],
    until: float,
    members: NodesByDomain | None = None,
    meter: WorkMeter | None = None,
) -> Hold | None:
    """A hold for a gang; None if no domain could hold it, or none besides those that are `taken`. `members`:
    the nodes with pods of its fabric domains. `meter`: what is left of the work for it."""
    index = capacity.index(demand.levels)
    demand = with_existing_pins(index, demand)
    unit = asked_unit(index, demand, requests)
    partitions = partitions_of(index, unit, demand, members or {})
    problem = Problem(pinned_unit(unit, kept_pins(unit, demand)), partitions=partitions)
    candidates = (each for each in _closest_domains(index, unit) if each not in taken)
    for domain, _ in zip(candidates, range(timing.HOLD_DOMAINS), strict=False):
        found = _place(index, replace(problem, within=domain), _vacatable(index, unit, domain), meter)
        if found is not None:
            nodes = {
                pod.slot: found.nodes[name]
                for pod in demand.unbound
                if (name := pod_name(pod.slot)) in found.nodes
            }
            return Hold(domain, nodes, until)
    return None


def _place(
    index: ClusterIndex, problem: Problem, vacatable: list[str], meter: WorkMeter | None
) -> Placed | None:
    """The placement that needs the fewest of these nodes to get free, in their order."""

    def with_vacated(count: int) -> Placed | None:
        vacated = frozenset(vacatable[:count])
        answer = solve(index, replace(problem, vacated=vacated), improvement_limit=0, meter=meter)
        return answer if isinstance(answer, Placed) else None

    if (found := with_vacated(len(vacatable))) is None:
        return None
    too_few, enough = 0, len(vacatable)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if (fewer := with_vacated(middle)) is None:
            too_few = middle
        else:
            found, enough = fewer, middle
    return found


def _closest_domains(index: ClusterIndex, unit: Unit) -> Iterator[Domain]:
    """The domains of the required level that have enough if they are empty, the most room first."""
    if not unit.required:
        return iter((CLUSTER,))
    if unit.required not in index.levels:
        return iter(())
    needs = _needs(unit)
    domains = index.subdomains(CLUSTER, index.levels.index(unit.required))
    enough = [each for each in domains if _share(index, index.empty, each, needs) >= 1]
    return iter(sorted(enough, key=lambda each: (-_share(index, index.actual, each, needs), each)))


def _needs(unit: Unit) -> Counter[str]:
    """What the pods of the minimum that have no node request together."""
    needs: Counter[str] = Counter()
    for each in walk(unit):
        for pod in each.pods:
            if not pod.node and not pod.extra:
                needs.update(pod.shape.requests)
    return needs


def _share(index: ClusterIndex, view: View, domain: Domain, needs: Mapping[str, int]) -> float:
    """How many times a domain has what is needed, of the scarcest resource."""
    sums = view.sums.get(domain)
    if sums is None:
        return 0.0
    shares = (
        sums[index.dims[name]] / amount if name in index.dims else 0.0
        for name, amount in needs.items()
        if amount
    )
    return min(shares, default=1.0)


def _vacatable(index: ClusterIndex, unit: Unit, domain: Domain) -> list[str]:
    """The nodes of a domain that may get free, the least used first. Pods of the gang itself stay where they
    are, and where other gangs are about to be bound, a hold would be in their way."""
    own = {pod.node for each in walk(unit) for pod in each.pods}
    dims = [index.dims[name] for name in _needs(unit) if name in index.dims]

    def used(i: int) -> float:
        free, of = index.actual.free[i], index.empty.free[i]
        return max((1 - free[d] / of[d] for d in dims if of[d]), default=0.0)

    members = [
        i
        for i in index.members.get(domain, ())
        if (name := index.node(i).name) not in own and not index.use_of(name).reserved
    ]
    return [index.node(i).name for i in sorted(members, key=used)]
