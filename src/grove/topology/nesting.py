"""Nested topology constraints: an inner part must not name a broader domain than the part around it.

Admission rejects a set that does. The levels of a topology can be reordered later, though, while sets that
use it run: `inverted` finds the constraints that this turns around.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.topology_constraint import TopologyConstraint

_Part = tuple[str, TopologyConstraint]


class Nesting(Struct, frozen=True):
    """A part of a set with a constraint, inside of another part with a constraint."""

    outer: str
    outer_domain: str
    inner: str
    inner_domain: str

    def __str__(self) -> str:
        return f"{self.outer} asks for {self.outer_domain}, and {self.inner} in it for {self.inner_domain}"


def nestings(template: PodCliqueSetTemplate) -> Iterator[Nesting]:
    """All pairs of a set: the set and its parts, each group and its cliques; required and preferred."""
    whole = _parts("PodCliqueSet", template.topology_constraint)
    around = {clique.name: whole for clique in template.cliques}
    for group in template.pod_clique_scaling_groups:
        own = _parts(f"PodCliqueScalingGroup '{group.name}'", group.topology_constraint)
        for part in own:
            yield from _pairs(whole, part)
        around |= dict.fromkeys(group.clique_names, whole + own)
    for clique in template.cliques:
        for part in _parts(f"PodClique '{clique.name}'", clique.topology_constraint):
            yield from _pairs(around[clique.name], part)


def inverted(found: Iterable[Nesting], levels: Sequence[str]) -> list[Nesting]:
    """The pairs whose outer domain is the narrower one; `levels` are from broad to narrow."""
    ranks = {domain: rank for rank, domain in enumerate(levels)}
    return [
        each
        for each in found
        if each.outer_domain in ranks
        and each.inner_domain in ranks
        and ranks[each.outer_domain] > ranks[each.inner_domain]
    ]


def _parts(owner: str, constraint: TopologyConstraint | None) -> tuple[_Part, ...]:
    return ((owner, constraint),) if constraint is not None else ()


def _pairs(outers: Iterable[_Part], inner: _Part) -> Iterator[Nesting]:
    owner, small = inner
    for outer, large in outers:
        pairs = {(large.required, small.required): None, (large.preferred, small.preferred): None}
        yield from (Nesting(outer, around, owner, within) for around, within in pairs if around and within)
