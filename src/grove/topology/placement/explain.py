"""Why a gang does not fit: for each of its domains the unit that has too little room, and the reasons by node
and resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from grove import timing
from grove.topology.placement.answers import DomainReport, NoFit, Reason, Shortage
from grove.topology.placement.candidates import all_gang_domains, excluded_by
from grove.topology.placement.eligibility import contradiction, rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain, Problem
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.units import PlacementUnit, PodClass


def explain(
    index: ClusterIndex, bounds: Bounds, gang: PlacementUnit, problem: Problem, candidates: list[Domain]
) -> NoFit:
    """The reasons in the domains that come closest. Whether the gang fits if the cluster is empty is left
    open."""
    everything = all_gang_domains(index, gang, problem)
    if general := _general(gang):
        return NoFit((DomainReport(problem.within, *general),), len(everything), None)
    if not everything:
        shortage = Shortage(Reason.NO_DOMAIN, resource=_missing_label(index, gang))
        return NoFit((DomainReport(problem.within, gang.name, (shortage,)),), 0, None)
    if missing := _missing_resource(gang):
        return NoFit((DomainReport(problem.within, *missing),), 1, None)
    domain_explainer = _Explainer(index, bounds)
    closest = sorted(candidates, key=lambda each: (-domain_explainer.tightness(gang, each), each))
    reports = [domain_explainer.report(gang, each) for each in closest[: timing.PLACEMENT_DOMAINS_EXPLAINED]]
    left = timing.PLACEMENT_DOMAINS_EXPLAINED - len(reports)
    skipped = (each for each in everything if each not in set(candidates))
    reports += [_skipped(each, gang, problem) for each, _ in zip(skipped, range(left), strict=False)]
    return NoFit(tuple(reports), len(everything), None)


def _general(gang: PlacementUnit) -> tuple[str, tuple[Shortage, ...]] | None:
    """A reason that holds in every domain: a unit, and what is wrong with it."""
    for unit in gang.walk():
        if unit.unknown_level:
            return unit.name, (Shortage(Reason.NO_DOMAIN, resource=unit.unknown_level),)
        for load in unit.loads:
            if key := contradiction(load.pod_class.shape):
                return unit.name, (Shortage(Reason.CONTRADICTION, resource=key, need=load.count),)
    return None


def _missing_resource(gang: PlacementUnit) -> tuple[str, tuple[Shortage, ...]] | None:
    """A unit, and a resource of it that no node has."""
    for unit in gang.walk():
        for load in unit.loads:
            if missing := load.pod_class.missing:
                need = load.count * load.pod_class.shape.requests.get(missing, 1)
                return unit.name, (Shortage(Reason.INSUFFICIENT, resource=missing, need=need),)
    return None


def _skipped(domain: Domain, gang: PlacementUnit, problem: Problem) -> DomainReport:
    if reason := excluded_by(domain, problem):
        return DomainReport(domain, gang.name, (Shortage(Reason.EXCLUDED, resource=reason),))
    return DomainReport(domain, gang.name, (Shortage(Reason.BOUND_ELSEWHERE, have=len(gang.bound)),))


def _level_key(index: ClusterIndex, unit: PlacementUnit) -> str:
    return index.levels[unit.required] if unit.required is not None else unit.unknown_level


def _missing_label(index: ClusterIndex, unit: PlacementUnit) -> str:
    """The label of the widest level for which there is no domain: without it there is none of the required
    level either."""
    for level in range((unit.required or 0) + 1):
        if unit.required is not None and not index.subdomains(CLUSTER, level):
            return index.levels[level]
    return _level_key(index, unit)


class _Explainer:
    def __init__(self, index: ClusterIndex, bounds: Bounds) -> None:
        self._index, self._view, self._bounds = index, bounds.view, bounds
        self._empty = Bounds(index, index.empty, bounds.work)
        self._names = {d: name for name, d in index.dims.items()}
        self.tightness = bounds.tightness

    def report(self, gang: PlacementUnit, domain: Domain) -> DomainReport:
        unit = self._bounds.shortfall(gang, domain)
        if unit is None:
            return DomainReport(domain, gang.name, (Shortage(Reason.FRAGMENTED, need=gang.pods),))
        if unit is not gang and not self._bounds.copies(unit, domain) and not unit.satisfied_by(domain):
            return self._report_inside(unit, domain)
        shortages = (*self._classes(unit, domain), *self._sums(unit, domain))
        if unit is not gang and (unit.required is not None or not shortages):
            copies = sum(part.kind == unit.kind for part in gang.walk())
            have, key = self._bounds.copies(unit, domain), _level_key(self._index, unit)
            shortages = (Shortage(Reason.FRAGMENTED, resource=key, have=have, need=copies),)
        if not shortages:  # each class has room alone, and the resources suffice
            shortages = (Shortage(Reason.FRAGMENTED, need=unit.pods),)
        return DomainReport(domain, unit.name, shortages)

    def _report_inside(self, unit: PlacementUnit, domain: Domain) -> DomainReport:
        """Why not even one unit fits into the domain of its own level that comes closest."""
        level = unit.required
        inner = () if level is None else self._index.subdomains(domain, level)
        closest = max(
            filter(unit.allows, sorted(inner)), key=lambda each: self.tightness(unit, each), default=None
        )
        if closest is None:
            shortage = Shortage(Reason.NO_DOMAIN, resource=_level_key(self._index, unit))
            return DomainReport(domain, unit.name, (shortage,))
        return self.report(unit, closest)

    def _classes(self, unit: PlacementUnit, domain: Domain) -> Iterator[Shortage]:
        """Reasons of the pods of which too few fit."""
        for pod_class, count in unit.totals.items():
            if self._bounds.room(pod_class, domain) >= count:
                continue
            if_empty = self._empty.room(pod_class, domain)
            if if_empty < count:
                yield Shortage(Reason.TOO_LARGE, have=if_empty, need=count)
            yield from self._nodes(pod_class, count, domain)

    def _nodes(self, pod_class: PodClass, count: int, domain: Domain) -> Iterator[Shortage]:
        rejected: Counter[tuple[Reason, str]] = Counter()
        short: Counter[int] = Counter()
        have: Counter[int] = Counter()
        reserved = 0
        for i in self._index.members.get(domain, ()):
            why = rejection(pod_class.shape, self._index.node(i))
            if why is not None:
                rejected[why] += 1
                continue
            free = self._view.free[i]
            for d, amount in pod_class.pairs:
                short[d] += free[d] < amount
                have[d] += max(0, free[d])
            if pod_class.slots(free) < pod_class.slots(self._index.free_without_reservations(i)):
                reserved += 1
        for (reason, about), nodes in sorted(rejected.items()):
            yield Shortage(reason, nodes, about)
        for d, amount in pod_class.pairs:
            if short[d]:
                need = amount * count
                yield Shortage(Reason.INSUFFICIENT, short[d], self._names[d], have[d], need)
        if reserved:
            yield Shortage(Reason.RESERVED, reserved)

    def _sums(self, unit: PlacementUnit, domain: Domain) -> Iterator[Shortage]:
        """Resources of which the domain as a whole has too little for all pods of a unit."""
        sums = self._view.sums.get(domain)
        for d, need in sorted(unit.needs.items()):
            have = sums[d] if sums is not None else 0
            if have < need:
                yield Shortage(Reason.INSUFFICIENT, 0, self._names[d], have, need)
