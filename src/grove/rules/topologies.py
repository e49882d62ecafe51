"""What is refused of a ClusterTopology or ClusterTopologyBinding, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.topology import ClusterTopologyBinding
from grove.rules import shape
from grove.rules.guard import judged
from grove.rules.model import Facts, FieldError, User, Verdict, duplicate, invalid
from grove.schedulers import kai, kai_topology
from grove.topology.nesting import Nesting, upside_down

Body = dict[str, Any]

_BINDINGS = "spec.schedulerTopologyReferences"
"""What upstream calls `schedulerTopologyBindings` in its errors: clients look for it."""
_MOST_LOSERS = 15
_REFERENCES = "spec.schedulerReferences"


@judged
def on_create(new: Body, facts: Facts) -> Verdict:
    """Judges a topology of either kind that is to be made: the raw JSON object. Never raises."""
    topology = shape.topology(new)
    errors = (*_levels(topology), *_schedulers(topology, facts))
    losses = _losses(_used(new, None, facts), _used(new, _domains(topology), facts), facts)
    return Verdict(errors, (*_unwelcome(topology, facts), *losses))


@judged
def on_update(old: Body, new: Body, facts: Facts) -> Verdict:
    """Judges a change: both raw JSON objects. Levels may be edited in place; a backend that has been switched
    off since is only refused where it is new. Never raises."""
    verdict = on_create(new, facts)
    if verdict.allowed:
        told = _unwelcome(topology := shape.topology(new), facts)
        return Verdict(warnings=(*told, *_lost(old, _domains(topology), facts)))
    known = set(map(str, on_create(old, facts).errors))
    return Verdict(tuple(error for error in verdict.errors if str(error) not in known))


@judged
def on_delete(old: Body, facts: Facts) -> Verdict:
    """Nothing holds up the end of a topology; but who loses by it is told. Never raises."""
    return Verdict(warnings=tuple(_lost(old, None, facts)))


_Domains = tuple[str, ...] | None


def _lost(old: Body, after: _Domains, facts: Facts) -> Iterator[str]:
    try:
        before = _domains(shape.topology(old))
    except shape.Misshapen:
        return
    yield from _losses(_used(old, before, facts), _used(old, after, facts), facts)


def _domains(topology: shape.Topology) -> tuple[str, ...]:
    return tuple(level.domain for level in topology.spec.levels)


def _used(body: Body, own: _Domains, facts: Facts) -> tuple[str, ...]:
    """The domains that sets find under the name, broad to narrow: of two kinds, the ClusterTopology's."""
    first, second = own, facts.rival
    if body.get("kind") == ClusterTopologyBinding.KIND.name:
        first, second = second, first
    return first if first is not None else second or ()


def _losses(before: tuple[str, ...], after: tuple[str, ...], facts: Facts) -> Iterator[str]:
    """Sets that name domains which are about to go, or to change places."""
    gone_for = {user.name: sorted(user.domains & set(before) - set(after)) for user in facts.users}
    losers = sorted((name, gone) for name, gone in gone_for.items() if gone)
    for name, gone in losers[:_MOST_LOSERS]:
        yield f"PodCliqueSet {name} loses {', '.join(gone)}: its pods stay, new ones are placed without"
    if (more := len(losers) - _MOST_LOSERS) > 0:
        yield f"and so do {more} more PodCliqueSets"
    wrong = {user.name: _turned(user, before, after) for user in facts.users}
    turned = sorted((name, str(found[0])) for name, found in wrong.items() if found)
    for name, what in turned[:_MOST_LOSERS]:
        yield f"PodCliqueSet {name} is upside down in these levels: {what}, which is the broader of the two"
    if (more := len(turned) - _MOST_LOSERS) > 0:
        yield f"and so are {more} more PodCliqueSets"


def _turned(user: User, before: tuple[str, ...], after: tuple[str, ...]) -> list[Nesting]:
    known = upside_down(user.nestings, before)
    return [each for each in upside_down(user.nestings, after) if each not in known]


def _unwelcome(topology: shape.Topology, facts: Facts) -> Iterator[str]:
    """Levels of which a scheduler will not make a topology. Others may use them, so they are not wrong."""
    if kai.NAME in facts.schedulers and kai.NAME not in dict(topology.spec.references):
        for why in kai_topology.refused(tuple(level.key for level in topology.spec.levels)):
            yield f"spec.levels: no topology will be made for {kai.NAME}: {why}"


def _levels(topology: shape.Topology) -> Iterator[FieldError]:
    domains: set[str] = set()
    labels: set[str] = set()
    for index, level in enumerate(topology.spec.levels):
        if level.domain in domains:
            yield duplicate(f"spec.levels[{index}].domain", level.domain)
        if level.key in labels:
            yield duplicate(f"spec.levels[{index}].key", level.key)
        domains.add(level.domain)
        labels.add(level.key)


def _schedulers(topology: shape.Topology, facts: Facts) -> Iterator[FieldError]:
    seen: set[str] = set()
    aware = {backend.name for backend in facts.backends.topology_aware}
    for path, listed in (
        (_REFERENCES, [each.scheduler_name for each in topology.spec.scheduler_references]),
        (_BINDINGS, [each.scheduler_name for each in topology.spec.scheduler_topology_bindings]),
    ):
        for index, name in enumerate(listed):
            place = f"{path}[{index}].schedulerName"
            if name in seen:
                yield duplicate(place, name)
            elif name not in facts.schedulers:
                yield invalid(place, name, "scheduler backend is not enabled in Grove")
            elif name not in aware:
                yield invalid(place, name, "scheduler backend does not implement topology-aware scheduling")
            seen.add(name)
