"""Validation of the fallbacks of a set's topology constraint.

Each is checked as if it was the constraint: its topology exists and has all levels that the set, its groups
and its cliques name, and no inner part has a broader domain than the part around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from grove.api.field_errors import FieldError, forbidden, invalid
from grove.api.formats import durations
from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.topology_constraint import TopologyFallback
from grove.rules.decode import Workload
from grove.rules.model import Facts
from grove.rules.podcliqueset import update_strategy
from grove.rules.podcliqueset.topology_constraints import constrained_parts
from grove.topology.constraints import topology_name_of
from grove.topology.fallbacks import attempts, fallbacks_of, with_fallback
from grove.topology.nesting import inverted, nestings

_PATH = "spec.template.topologyConstraint.fallbacks"
_Aim = tuple[str, str]
"""The topology and the required domain of the set; empty: none."""


def on_create(workload: Workload, facts: Facts) -> list[FieldError]:
    """Errors of the fallbacks of a set whose constraints are valid."""
    return [
        *_repeated(workload.template),
        *(
            error
            for index, fallback in enumerate(fallbacks_of(workload.template))
            for error in _errors(workload, index, fallback, facts)
        ),
    ]


def on_update(old: Workload, new: Workload) -> Iterator[FieldError]:
    """An error for changed fallbacks. That a constraint is added or removed is another error."""
    if old.template.topology_constraint is None or new.template.topology_constraint is None:
        return
    before, after = (list(map(_normalized, fallbacks_of(each.template))) for each in (old, new))
    if before != after:
        yield forbidden(
            _PATH, "fallbacks cannot be changed after creation: create a new PodCliqueSet instead"
        )


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """A warning for a fallback that fits nowhere if an earlier attempt does not: it is narrower, in the same
    topology."""
    earlier: list[_Aim] = []
    for index, (topology, domain) in enumerate(map(_aim, attempts(workload.template)), start=-1):
        levels = facts.topologies.get(topology, ())
        broader = [d for t, d in earlier if t == topology and _is_broader(d, domain, levels)]
        if broader:
            than = f"domain '{broader[0]}'" if broader[0] else "no domain"
            yield (
                f"{_PATH}[{index}] has no effect: domain '{domain}' is narrower than {than}, which is tried "
                "before it"
            )
        earlier.append((topology, domain))


def _aim(template: PodCliqueSetTemplate) -> _Aim:
    constraint = template.topology_constraint
    return topology_name_of(template), constraint.required if constraint is not None else ""


def _is_broader(outer: str, inner: str, levels: tuple[str, ...]) -> bool:
    if not outer:
        return inner in levels
    return outer in levels and inner in levels and levels.index(outer) < levels.index(inner)


def _repeated(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    first, *aims = map(_aim, attempts(template))
    for index, aim in enumerate(aims):
        if aim == first or aim in aims[:index]:
            where = "the constraint" if aim == first else f"fallbacks[{aims.index(aim)}]"
            fallback = fallbacks_of(template)[index]
            yield invalid(f"{_PATH}[{index}]", fallback, f"is the same as {where}: remove or change it")


def _errors(workload: Workload, index: int, fallback: TopologyFallback, facts: Facts) -> Iterator[FieldError]:
    path = f"{_PATH}[{index}]"
    yield from update_strategy.duration(f"{path}.after", fallback.after)
    template = with_fallback(workload.template, index)
    topology = topology_name_of(template)
    levels = facts.topologies.get(topology)
    named = (f"{path}.topologyName", topology)
    if levels is None:
        yield invalid(*named, f'ClusterTopology or ClusterTopologyBinding "{topology}" not found')
        return
    packed = (f"{path}.packDomain", fallback.pack_domain) if fallback.pack_domain else named
    for part in constrained_parts(replace(workload, spec=replace(workload.spec, template=template))):
        if part.constraint.topology_name not in ("", topology):
            why = f'{part} names topology "{part.constraint.topology_name}" itself: remove its topologyName'
            yield invalid(*named, why)
        for domain in dict.fromkeys((part.constraint.required, part.constraint.preferred)):
            if domain and domain not in levels:
                place = packed if part.parent is None and domain == fallback.pack_domain else named
                why = f"topology domain '{domain}' of {part} does not exist in cluster topology"
                yield invalid(*place, f"{why} [{', '.join(levels)}]")
    for nesting in inverted(nestings(template), levels):
        yield invalid(*packed, f"{nesting}, which is the broader one in topology {topology}")


def _normalized(fallback: TopologyFallback) -> tuple[str, str, timedelta | str]:
    """Equal for all spellings of one duration: clients in Go write `60s` as `1m0s`."""
    try:
        return fallback.topology_name, fallback.pack_domain, durations.parse(fallback.after)
    except ValueError:
        return fallback.topology_name, fallback.pack_domain, fallback.after
