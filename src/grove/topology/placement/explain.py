"""Why a gang does not fit: for each of its domains the unit that has too little room, and the reasons by node
and resource."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from grove import timing
from grove.topology.placement.answers import DomainReport, NoFit, Reason, Shortage, one_shortage
from grove.topology.placement.candidates import all_gang_domains, excluded_by
from grove.topology.placement.cause import ClassRoom, RejectedNodes, cause
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
        return NoFit((one_shortage(problem.within, *general),), len(everything), None)
    if not everything:
        shortage = Shortage(Reason.NO_DOMAIN, resource=_missing_label(index, gang))
        return NoFit((one_shortage(problem.within, gang.name, shortage),), 0, None)
    if missing := _missing_resource(gang):
        report = one_shortage(problem.within, *missing)
        return NoFit((replace(report, cause=Reason.NO_SUCH_RESOURCE),), 1, None)
    domain_explainer = _Explainer(index, bounds)
    closest = sorted(candidates, key=lambda each: (-domain_explainer.tightness(gang, each), each))
    reports = [domain_explainer.report(gang, each) for each in closest[: timing.PLACEMENT_DOMAINS_EXPLAINED]]
    considered = set(candidates)
    skipped = (each for each in everything if each not in considered)
    left = timing.PLACEMENT_DOMAINS_EXPLAINED - len(reports)
    reports += [_skipped(each, gang, problem) for each in islice(skipped, left)]
    return NoFit(tuple(reports), len(everything), None)


def _general(gang: PlacementUnit) -> tuple[str, Shortage] | None:
    """A reason that holds in every domain: a unit, and what is wrong with it."""
    for unit in gang.walk():
        if unit.unknown_level:
            return unit.name, Shortage(Reason.NO_DOMAIN, resource=unit.unknown_level)
        for load in unit.loads:
            if key := contradiction(load.pod_class.shape):
                return unit.name, Shortage(Reason.CONTRADICTION, resource=key, need=load.count)
    return None


def _missing_resource(gang: PlacementUnit) -> tuple[str, Shortage] | None:
    """A unit, and a resource of it that no node has."""
    for unit in gang.walk():
        for load in unit.loads:
            if missing := load.pod_class.missing:
                need = load.count * load.pod_class.shape.requests.get(missing, 1)
                return unit.name, Shortage(Reason.INSUFFICIENT, resource=missing, need=need)
    return None


def _skipped(domain: Domain, gang: PlacementUnit, problem: Problem) -> DomainReport:
    if reason := excluded_by(domain, problem):
        return one_shortage(domain, gang.name, Shortage(Reason.EXCLUDED, resource=reason))
    return one_shortage(domain, gang.name, Shortage(Reason.BOUND_ELSEWHERE, have=len(gang.bound)))


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
        nodes = len(self._index.members.get(domain, ()))
        unit = self._bounds.shortfall(gang, domain)
        if unit is None:
            fragmented = Shortage(Reason.FRAGMENTED, need=gang.pods)
            return replace(one_shortage(domain, gang.name, fragmented), nodes=nodes)
        if unit is not gang and not self._bounds.copies(unit, domain) and not unit.satisfied_by(domain):
            return self._report_inside(unit, domain)
        by_class = list(self._classes(unit, domain))
        found = [why for why, _ in by_class]
        shortages = (*(each for _, short in by_class for each in short), *self._sums(unit, domain))
        if unit is not gang and (unit.required is not None or not shortages):
            copies = sum(part.kind == unit.kind for part in gang.walk())
            have, key = self._bounds.copies(unit, domain), _level_key(self._index, unit)
            shortages = (Shortage(Reason.FRAGMENTED, resource=key, have=have, need=copies),)
            found = [Reason.FRAGMENTED]
        if not shortages:  # each class has room alone, and the resources suffice
            shortages = (Shortage(Reason.FRAGMENTED, need=unit.pods),)
        return DomainReport(domain, unit.name, shortages, next(iter(found), shortages[0].reason), nodes)

    def _report_inside(self, unit: PlacementUnit, domain: Domain) -> DomainReport:
        """Why not even one unit fits into the domain of its own level that comes closest."""
        level = unit.required
        inner = () if level is None else self._index.subdomains(domain, level)
        closest = max(
            filter(unit.allows, sorted(inner)), key=lambda each: self.tightness(unit, each), default=None
        )
        if closest is None:
            shortage = Shortage(Reason.NO_DOMAIN, resource=_level_key(self._index, unit))
            return one_shortage(domain, unit.name, shortage)
        return self.report(unit, closest)

    def _classes(self, unit: PlacementUnit, domain: Domain) -> Iterator[tuple[Reason, list[Shortage]]]:
        """The cause and all reasons of the pods of which too few fit, by class."""
        for pod_class, count in unit.totals.items():
            if self._bounds.room(pod_class, domain) < count:
                yield self._class(pod_class, count, domain)

    def _class(self, pod_class: PodClass, count: int, domain: Domain) -> tuple[Reason, list[Shortage]]:
        rejected: dict[tuple[Reason, str], RejectedNodes] = {}
        eligible = []
        for i in self._index.members.get(domain, ()):
            why = rejection(pod_class.shape, self._index.node(i))
            if why is None:
                eligible.append(i)
                continue
            nodes = rejected.setdefault(why, RejectedNodes())
            nodes.nodes += 1
            nodes.room += min(count, pod_class.slots(self._view.free[i]))
            nodes.if_empty += min(count, pod_class.slots(self._index.empty.free[i]))
        without = sum(pod_class.slots(self._index.free_without_reservations(i)) for i in eligible)
        room, if_empty = self._bounds.room(pod_class, domain), self._empty.room(pod_class, domain)
        found = ClassRoom(count, room, if_empty, without, rejected, len(eligible))
        shortages = [Shortage(Reason.TOO_LARGE, have=if_empty, need=count)] if if_empty < count else []
        shortages += (
            Shortage(reason, nodes.nodes, about, nodes.room, count)
            for (reason, about), nodes in sorted(rejected.items(), key=lambda each: each[0])
        )
        return cause(found), [*shortages, *self._amounts(pod_class, count, eligible)]

    def _amounts(self, pod_class: PodClass, count: int, eligible: list[int]) -> Iterator[Shortage]:
        """Resources that nodes have too little of, and nodes where others have reserved room."""
        free = [self._view.free[i] for i in eligible]
        for d, amount in pod_class.pairs:
            if short := sum(each[d] < amount for each in free):
                have = sum(max(0, each[d]) for each in free)
                yield Shortage(Reason.INSUFFICIENT, short, self._names[d], have, amount * count)
        reserved = sum(
            pod_class.slots(now) < pod_class.slots(self._index.free_without_reservations(i))
            for i, now in zip(eligible, free, strict=True)
        )
        if reserved:
            yield Shortage(Reason.RESERVED, reserved)

    def _sums(self, unit: PlacementUnit, domain: Domain) -> Iterator[Shortage]:
        """Resources of which the domain as a whole has too little for all pods of a unit."""
        sums = self._view.sums.get(domain)
        for d, need in sorted(unit.needs.items()):
            have = sums[d] if sums is not None else 0
            if have < need:
                yield Shortage(Reason.INSUFFICIENT, 0, self._names[d], have, need)
