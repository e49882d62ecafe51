"""The domains that a gang might go to, with what each has and lacks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from grove.explanation.model import DomainRow
from grove.reasons.placement import domain_name
from grove.topology.placement.answers import NoFit, Reason
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain, Unit
from grove.topology.placement.needs.devices import described
from grove.topology.placement.units import Compiler, PlacementUnit, PodClass

_WORDS = {
    Reason.NOT_READY: "not ready",
    Reason.CORDONED: "cordoned",
    Reason.TAINT: "tainted",
    Reason.SELECTOR: "without",
}


ReservedFor = Callable[[str], Iterable[tuple[str, str]]]
"""The namespaces and names of gangs for which something of a node is reserved."""


def domain_rows(
    index: ClusterIndex, gang: Unit, resource: str, reserved_for: ReservedFor = lambda _: ()
) -> list[DomainRow]:
    """A row for each domain of the level that the gang must fit into, those that lack least first."""
    unit = Compiler(index).compile(gang)
    main = main_class(unit)
    if main is None:
        return []
    rows = [_row(index, unit, main, resource, domain, reserved_for) for domain in _domains(index, unit)]
    return sorted(rows, key=lambda row: (row.pods - row.room, row.short, row.domain))


def main_class(unit: PlacementUnit) -> PodClass | None:
    """The pods that are most of the gang, those with accelerators first; None if no node has what they
    need."""
    if any(each.missing for each in unit.totals):
        return None
    return max(unit.totals, key=lambda each: (each.accelerated, unit.totals[each]), default=None)


def short_resource(index: ClusterIndex, gang: Unit, answer: NoFit) -> str:
    """The resource that is short, or else the accelerators that the pods ask for, or else any."""
    main = main_class(Compiler(index).compile(gang))
    if main is None:
        return ""
    requests = main.shape.requests
    short = (
        each.resource
        for report in answer.reports
        for each in report.shortages
        if each.reason is Reason.INSUFFICIENT and each.resource in requests
    )
    accelerators = (name for name in requests if index.extended[index.dims[name]])
    return next(short, "") or next(accelerators, "") or next(iter(requests), "")


def closest_domain(answer: NoFit) -> Domain:
    """The domain that comes closest."""
    return answer.reports[0].domain if answer.reports else CLUSTER


def _domains(index: ClusterIndex, unit: PlacementUnit) -> Sequence[Domain]:
    """Of the gang, or of the first part with a level of its own if the gang has none."""
    leveled = next((each for each in unit.walk() if each.required is not None), None)
    if leveled is None or leveled.required is None:
        return [CLUSTER]
    return sorted(index.subdomains(CLUSTER, leveled.required))


def _row(
    index: ClusterIndex,
    unit: PlacementUnit,
    main: PodClass,
    resource: str,
    domain: Domain,
    reserved_for: ReservedFor,
) -> DomainRow:
    members = index.members.get(domain, [])
    reserved = Counter("/".join(gang) for i in members for gang in reserved_for(index.node(i).name))
    unusable: Counter[str] = Counter()
    eligible = []
    for i in members:
        if why := rejection(main.shape, index.node(i)):
            unusable[_unusable(*why)] += 1
        else:
            eligible.append(i)
    d = index.dims.get(resource)
    count = unit.totals[main]
    needs = sum(each.shape.requests.get(resource, 0) * number for each, number in unit.totals.items())
    return DomainRow(
        domain_name(domain, index.levels),
        len(members),
        len(eligible),
        dict(sorted(unusable.items())),
        described(resource) if resource else "",
        sum(max(0, index.actual.free[i][d]) for i in eligible) if d is not None else 0,
        sum(index.empty.free[i][d] for i in eligible) if d is not None else 0,
        needs,
        min(count, sum(main.slots(index.actual.free[i]) for i in eligible)),
        count,
        dict(sorted(reserved.items(), key=lambda each: (-each[1], each[0]))),
    )


def _unusable(reason: Reason, about: str) -> str:
    return f"{_WORDS.get(reason, reason.value)} {about}".strip()
