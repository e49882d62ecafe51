"""Constraints inside of constraints: what is inside of a part must not ask for more room than the part has.

A set that asks for it is refused. Levels may be put into another order later, though, under sets that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from grove.api.types.clustertopology import TopologyConstraint
from grove.api.types.podcliqueset import PodCliqueSetTemplate

_Part = tuple[str, TopologyConstraint]


class Nesting(Struct, frozen=True):
    """A part that asks for a domain inside of another that asks for one."""

    outer: str
    """Whose the domain around is."""
    around: str
    inner: str
    within: str
    """The domain of the inner part."""

    def __str__(self) -> str:
        return f"{self.outer} asks for {self.around}, and {self.inner} in it for {self.within}"


def nestings(template: PodCliqueSetTemplate) -> Iterator[Nesting]:
    """All of a set: itself and each of its parts, each group and its cliques; must and should alike."""
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
    """Those whose outer domain is the narrower one, in levels that go from broad to narrow."""
    ranks = {domain: rank for rank, domain in enumerate(levels)}
    return [
        each
        for each in found
        if each.around in ranks and each.within in ranks and ranks[each.around] > ranks[each.within]
    ]


def _parts(whose: str, constraint: TopologyConstraint | None) -> tuple[_Part, ...]:
    return ((whose, constraint),) if constraint is not None else ()


def _pairs(outers: Iterable[_Part], inner: _Part) -> Iterator[Nesting]:
    whose, small = inner
    for outer, large in outers:
        pairs = {(large.required, small.required): None, (large.preferred, small.preferred): None}
        yield from (Nesting(outer, around, whose, within) for around, within in pairs if around and within)
