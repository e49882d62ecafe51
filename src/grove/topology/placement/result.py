"""The answer for a gang that is placed: names of nodes and domains, and where extra pods go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from grove import timing
from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.search.greedy import Greedy
from grove.topology.placement.search.state import OutOfWork, Preferences, State, Step, best
from grove.topology.placement.units import Load, PlacementUnit


def placed(
    index: ClusterIndex, state: State, bounds: Bounds, gang: PlacementUnit, steps: list[Step], optimal: bool
) -> Placed:
    """The answer for the steps of the best placement of the minimum. The state has no steps."""
    for step in steps:
        state.put(step.load, step.node, step.pods)
    broken = tuple(state.broken)
    unmet = Preferences(index, gang).unmet(steps)
    nodes_of = _nodes_of_units(gang, steps)
    domains = {unit.name: _domain(index, unit, nodes_of[id(unit)]) for unit in gang.walk()}
    nodes = {name: node for unit in gang.walk() for name, node in unit.bound_pods.items()}
    names = {id(load): iter(load.pods) for unit in gang.walk() for load in unit.loads}
    for step in steps:
        for _ in range(step.pods):
            nodes[next(names[id(step.load)])] = index.node(step.node).name
    nodes |= _place_extra(index, state, bounds, gang, nodes_of)
    return Placed(nodes, domains, 1.0 - unmet, unmet < 1e-9, broken, optimal)


def _nodes_of_units(gang: PlacementUnit, steps: Iterable[Step]) -> dict[int, Counter[int]]:
    """By unit, how many of its pods each node has."""
    found = {id(unit): Counter(unit.bound) for unit in gang.walk()}
    for step in steps:
        unit: PlacementUnit | None = step.load.unit
        while unit is not None:
            found[id(unit)][step.node] += step.pods
            unit = unit.outer
    return found


def _domain(index: ClusterIndex, unit: PlacementUnit, nodes: Counter[int]) -> Domain:
    """The domain of the required level; otherwise the narrowest one that holds all pods."""
    if not nodes:
        return CLUSTER
    if unit.required is not None:
        return next((d for i in nodes if (d := index.domain_at(i, unit.required))), CLUSTER)
    shared = set.intersection(*(set(index.domains_of[i]) for i in nodes))
    return max(shared, key=len)


def _place_extra(
    index: ClusterIndex,
    state: State,
    bounds: Bounds,
    gang: PlacementUnit,
    nodes_of: dict[int, Counter[int]],
) -> dict[str, str]:
    """Nodes of pods beyond the minimum: in the preferred domain of their unit, or elsewhere in its domain."""
    bounds.work.limit = bounds.work.done + timing.PLACEMENT_WORK
    greedy = Greedy(index, state, bounds, bounds.work)
    found: dict[str, str] = {}
    for unit in gang.walk():
        for load in unit.loads:
            if not load.extra:
                continue
            start, areas = len(state.steps), _areas(index, load, nodes_of)
            try:
                left = greedy.put(load, len(load.extra), areas)
                if left and load.extra_class is not None:
                    greedy.put(Load(load.extra_class, unit), left, areas)
            except OutOfWork:
                return found
            names = iter(load.extra)
            for step in state.steps[start:]:
                for _ in range(step.pods):
                    found[next(names)] = index.node(step.node).name
    return found


def _areas(index: ClusterIndex, load: Load, nodes_of: dict[int, Counter[int]]) -> tuple[Domain, ...]:
    """Preferred domains of the units around a load, narrow ones first, then the domain they must stay in."""
    preferred: list[Domain] = []
    limit = CLUSTER
    unit: PlacementUnit | None = load.unit
    while unit is not None:
        nodes = nodes_of[id(unit)]
        if unit.preferred is not None:
            counts: Counter[Domain | None] = Counter()
            for i, count in nodes.items():
                counts[index.domain_at(i, unit.preferred)] += count
            preferred += [d for d, n in counts.items() if d is not None and n == best(counts)][:1]
        if unit.required is not None:
            domain = _domain(index, unit, nodes)
            limit = domain if len(domain) > len(limit) else limit
        unit = unit.outer
    inside = [each for each in preferred if each[: len(limit)] == limit and each != limit]
    return (*inside, limit)
