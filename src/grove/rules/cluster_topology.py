"""What is refused of a ClusterTopology or ClusterTopologyBinding, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.types.clustertopology import ClusterTopologyBinding
from grove.rules import decode
from grove.rules.error_verdict import never_raises
from grove.rules.model import AdmissionResult, Facts, FieldError, TopologyUser, duplicate, invalid
from grove.schedulers import kai, kai_topology
from grove.topology.nesting import Nesting, inverted

Body = dict[str, Any]

_BINDINGS = "spec.schedulerTopologyReferences"
"""What upstream calls `schedulerTopologyBindings` in its errors: clients look for it."""
_MAX_AFFECTED_SETS = 15
_REFERENCES = "spec.schedulerReferences"


@never_raises
def on_create(new: Body, facts: Facts) -> AdmissionResult:
    """Judges a topology of either kind that is to be made: the raw JSON object. Never raises."""
    topology = decode.topology(new)
    errors = (*_levels(topology), *_schedulers(topology, facts))
    losses = _affected_sets(
        _visible_domains(new, None, facts), _visible_domains(new, _domains(topology), facts), facts
    )
    return AdmissionResult(errors, (*_scheduler_warnings(topology, facts), *losses))


@never_raises
def on_update(old: Body, new: Body, facts: Facts) -> AdmissionResult:
    """Judges a change: both raw JSON objects. Levels may be edited in place; a backend that has been switched
    off since is only refused where it is new. Never raises."""
    verdict = on_create(new, facts)
    if verdict.allowed:
        told = _scheduler_warnings(topology := decode.topology(new), facts)
        return AdmissionResult(warnings=(*told, *_removal_warnings(old, _domains(topology), facts)))
    known = set(map(str, on_create(old, facts).errors))
    return AdmissionResult(tuple(error for error in verdict.errors if str(error) not in known))


@never_raises
def on_delete(old: Body, facts: Facts) -> AdmissionResult:
    """Nothing holds up the end of a topology; but who loses by it is told. Never raises."""
    return AdmissionResult(warnings=tuple(_removal_warnings(old, None, facts)))


_Domains = tuple[str, ...] | None


def _removal_warnings(old: Body, after: _Domains, facts: Facts) -> Iterator[str]:
    try:
        before = _domains(decode.topology(old))
    except decode.ObjectFormatError:
        return
    yield from _affected_sets(
        _visible_domains(old, before, facts), _visible_domains(old, after, facts), facts
    )


def _domains(topology: decode.DecodedTopology) -> tuple[str, ...]:
    return tuple(level.domain for level in topology.spec.levels)


def _visible_domains(body: Body, own: _Domains, facts: Facts) -> tuple[str, ...]:
    """The domains that sets find under the name, broad to narrow: of two kinds, the ClusterTopology's."""
    first, second = own, facts.other_kind_domains
    if body.get("kind") == ClusterTopologyBinding.KIND.name:
        first, second = second, first
    return first if first is not None else second or ()


def _affected_sets(before: tuple[str, ...], after: tuple[str, ...], facts: Facts) -> Iterator[str]:
    """Sets that name domains which are about to go, or to change places."""
    gone_for = {user.name: sorted(user.domains & set(before) - set(after)) for user in facts.users}
    losers = sorted((name, gone) for name, gone in gone_for.items() if gone)
    for name, gone in losers[:_MAX_AFFECTED_SETS]:
        yield f"PodCliqueSet {name} loses {', '.join(gone)}: its pods stay, new ones are placed without"
    if (more := len(losers) - _MAX_AFFECTED_SETS) > 0:
        yield f"and so do {more} more PodCliqueSets"
    wrong = {user.name: _inverted_nestings(user, before, after) for user in facts.users}
    turned = sorted((name, str(found[0])) for name, found in wrong.items() if found)
    for name, what in turned[:_MAX_AFFECTED_SETS]:
        yield f"PodCliqueSet {name} is upside down in these levels: {what}, which is the broader of the two"
    if (more := len(turned) - _MAX_AFFECTED_SETS) > 0:
        yield f"and so are {more} more PodCliqueSets"


def _inverted_nestings(user: TopologyUser, before: tuple[str, ...], after: tuple[str, ...]) -> list[Nesting]:
    known = inverted(user.nestings, before)
    return [each for each in inverted(user.nestings, after) if each not in known]


def _scheduler_warnings(topology: decode.DecodedTopology, facts: Facts) -> Iterator[str]:
    """Levels of which a scheduler will not make a topology. Others may use them, so they are not wrong."""
    if kai.NAME in facts.schedulers and kai.NAME not in dict(topology.spec.references):
        for why in kai_topology.refused(tuple(level.key for level in topology.spec.levels)):
            yield f"spec.levels: no topology will be made for {kai.NAME}: {why}"


def _levels(topology: decode.DecodedTopology) -> Iterator[FieldError]:
    domains: set[str] = set()
    labels: set[str] = set()
    for index, level in enumerate(topology.spec.levels):
        if level.domain in domains:
            yield duplicate(f"spec.levels[{index}].domain", level.domain)
        if level.key in labels:
            yield duplicate(f"spec.levels[{index}].key", level.key)
        domains.add(level.domain)
        labels.add(level.key)


def _schedulers(topology: decode.DecodedTopology, facts: Facts) -> Iterator[FieldError]:
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
