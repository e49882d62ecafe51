"""Validation of ClusterTopologies and ClusterTopologyBindings: errors in their levels and scheduler
references, and warnings about PodCliqueSets that a change affects.

A change or deletion is never refused because sets use the topology; their authors are warned instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.field_errors import FieldError, duplicate, invalid, required
from grove.api.types.clustertopology import ClusterTopologyBinding
from grove.rules import decode, syntax
from grove.rules.error_verdict import never_raises
from grove.rules.model import AdmissionResult, Facts, TopologyUser
from grove.schedulers import kai, kai_topology
from grove.topology.nesting import Nesting, inverted

Body = dict[str, Any]

_BINDINGS = "spec.schedulerTopologyReferences"
"""The path of `schedulerTopologyBindings` in upstream's errors, which clients search for."""
_MAX_AFFECTED_SETS = 15
_REFERENCES = "spec.schedulerReferences"
_CONTRADICTION = "has constraints that contradict the order of these levels"


@never_raises
def on_create(new: Body, facts: Facts) -> AdmissionResult:
    """The verdict on a new topology of either kind, given as a raw JSON object. Never raises."""
    topology = decode.topology(new)
    errors = (*_levels(topology), *_schedulers(topology, facts))
    affected = _affected_sets(
        _visible_domains(new, None, facts), _visible_domains(new, _domains(topology), facts), facts
    )
    return AdmissionResult(errors, (*_level_warnings(topology, facts), *affected))


@never_raises
def on_update(old: Body, new: Body, facts: Facts) -> AdmissionResult:
    """The verdict on a change, given as two raw JSON objects. Levels may be edited in place; a reference to a
    disabled backend is refused only if the change adds it. Never raises."""
    verdict = on_create(new, facts)
    if verdict.allowed:
        of_levels = _level_warnings(topology := decode.topology(new), facts)
        removals = _removal_warnings(old, _domains(topology), facts)
        return AdmissionResult(warnings=(*of_levels, *removals))
    known = set(map(str, on_create(old, facts).errors))
    return AdmissionResult(tuple(error for error in verdict.errors if str(error) not in known))


@never_raises
def on_delete(old: Body, facts: Facts) -> AdmissionResult:
    """Deletion of a topology is always allowed, with warnings about the sets that use it. Never raises."""
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
    """The domains that sets find under the topology's name, broad to narrow: those of the ClusterTopology if
    both kinds have an object of this name."""
    first, second = own, facts.other_kind_domains
    if body.get("kind") == ClusterTopologyBinding.KIND.name:
        first, second = second, first
    return first if first is not None else second or ()


def _affected_sets(before: tuple[str, ...], after: tuple[str, ...], facts: Facts) -> Iterator[str]:
    """Warnings about sets whose constraints name domains that the change removes or reorders."""
    removed = {user.name: sorted(user.domains & set(before) - set(after)) for user in facts.users}
    losing = sorted((name, domains) for name, domains in removed.items() if domains)
    for name, domains in losing[:_MAX_AFFECTED_SETS]:
        yield (
            f"PodCliqueSet {name} loses {', '.join(domains)}: its pods stay, new pods are placed without "
            "this constraint"
        )
    if (more := len(losing) - _MAX_AFFECTED_SETS) > 0:
        yield f"{more} more PodCliqueSets lose topology domains"
    nestings = {user.name: _inverted_nestings(user, before, after) for user in facts.users}
    contradicting = sorted((name, str(found[0])) for name, found in nestings.items() if found)
    for name, nesting in contradicting[:_MAX_AFFECTED_SETS]:
        yield f"PodCliqueSet {name} {_CONTRADICTION}: {nesting}, which is the broader of the two"
    if (more := len(contradicting) - _MAX_AFFECTED_SETS) > 0:
        yield f"{more} more PodCliqueSets have constraints that contradict the order of these levels"


def _inverted_nestings(user: TopologyUser, before: tuple[str, ...], after: tuple[str, ...]) -> list[Nesting]:
    known = inverted(user.nestings, before)
    return [each for each in inverted(user.nestings, after) if each not in known]


def level_keys(body: Body) -> tuple[str, ...]:
    """The node labels of a topology's levels, for the caller to look up. Never raises."""
    try:
        return tuple(level.key for level in decode.topology(body).spec.levels)
    except (decode.ObjectFormatError, RecursionError):
        return ()


def _level_warnings(topology: decode.DecodedTopology, facts: Facts) -> Iterator[str]:
    """Levels whose label no node has, and levels for which a scheduler gets no topology. Nodes may be added
    later and other schedulers may use the levels, so these are no errors."""
    for index, level in enumerate(topology.spec.levels):
        if level.key in facts.unused_labels:
            yield (
                f"spec.levels[{index}].key: no node has the label {level.key}: gangs that require "
                f"{level.domain} wait until nodes have it"
            )
    if kai.NAME in facts.schedulers and kai.NAME not in dict(topology.spec.references):
        for why in kai_topology.refused(tuple(level.key for level in topology.spec.levels)):
            yield f"spec.levels: no Topology is created for {kai.NAME}: {why}"


def _levels(topology: decode.DecodedTopology) -> Iterator[FieldError]:
    domains: set[str] = set()
    labels: set[str] = set()
    for index, level in enumerate(topology.spec.levels):
        if level.domain in domains:
            yield duplicate(f"spec.levels[{index}].domain", level.domain)
        if level.key in labels:
            yield duplicate(f"spec.levels[{index}].key", level.key)
        wrong = syntax.label_key(level.key)
        yield from (invalid(f"spec.levels[{index}].key", level.key, each) for each in wrong)
        domains.add(level.domain)
        labels.add(level.key)


def _schedulers(topology: decode.DecodedTopology, facts: Facts) -> Iterator[FieldError]:
    seen: set[str] = set()
    aware = {backend.name for backend, _ in facts.backends.topology_aware}
    for path, scheduler, reference in _references(topology):
        place = f"{path}.schedulerName"
        if not scheduler:
            yield required(place, "name the scheduler that has the topology")
        elif scheduler in seen:
            yield duplicate(place, scheduler)
        elif scheduler not in facts.schedulers:
            yield invalid(place, scheduler, "scheduler backend is not enabled in Grove")
        elif scheduler not in aware:
            yield invalid(place, scheduler, "scheduler backend does not implement topology-aware scheduling")
        if not reference[1]:
            why = "name the topology of the scheduler, or remove the entry: the operator then creates one"
            yield required(f"{path}.{reference[0]}", why)
        seen.add(scheduler)


def _references(topology: decode.DecodedTopology) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """The path of each reference, its scheduler, and the field of its topology with the value."""
    for index, each in enumerate(topology.spec.scheduler_references):
        yield f"{_REFERENCES}[{index}]", each.scheduler_name, ("reference", each.reference)
    for index, bound in enumerate(topology.spec.scheduler_topology_bindings):
        found = ("topologyReference", bound.topology_reference)
        yield f"{_BINDINGS}[{index}]", bound.scheduler_name, found
