"""Validation of the startup order: a clique must not start after itself or an unknown clique, and cliques
must not wait for each other in a cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grove.api.field_errors import FieldError, duplicate, invalid
from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSetTemplate, StartupType
from grove.rules.syntax import duplicates

_CLIQUES = "spec.template.cliques"
_MAX_NAMED = 8
_DISABLED = (
    "start orders are disabled on this operator: "
    f"use cliqueStartupType {StartupType.ANY_ORDER}, or set startOrder.enabled in its configuration"
)


def errors(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """Errors of `startsAfter`, which is used only with `CliqueStartupTypeExplicit`."""
    if template.clique_startup_type is not StartupType.EXPLICIT:
        return
    for index, clique in enumerate(template.cliques):
        yield from _clique_errors(f"{_CLIQUES}[{index}].spec.startsAfter", clique)
    known = {clique.name for clique in template.cliques}
    named = (name for clique in template.cliques for name in clique.spec.starts_after)
    if unknown := sorted({name for name in named if name and name not in known}):
        why = "unknown PodClique names found: use names of spec.template.cliques"
        yield invalid(f"{_CLIQUES}.startsAfter", unknown, why)
    after = {clique.name: clique.spec.starts_after for clique in template.cliques}
    for cycle in cycles(after):
        shown = " -> ".join([*cycle[:_MAX_NAMED], *(["..."] if len(cycle) > _MAX_NAMED else []), cycle[0]])
        yield invalid(_CLIQUES, cycle, f"circular dependencies: {shown}")


def disabled(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """Errors of a set with a start order, for an operator on which start orders are disabled."""
    if template.clique_startup_type is StartupType.IN_ORDER and len(template.cliques) > 1:
        yield invalid("spec.template.cliqueStartupType", template.clique_startup_type.value, _DISABLED)
    if template.clique_startup_type is StartupType.EXPLICIT:
        for index, clique in enumerate(template.cliques):
            if clique.spec.starts_after:
                path = f"{_CLIQUES}[{index}].spec.startsAfter"
                yield invalid(path, list(clique.spec.starts_after), _DISABLED)


def warnings(template: PodCliqueSetTemplate) -> Iterator[str]:
    """A warning if `startsAfter` is set with a startup type that ignores it."""
    if template.clique_startup_type is StartupType.EXPLICIT:
        return
    if any(clique.spec.starts_after for clique in template.cliques):
        yield (
            f"{_CLIQUES}: startsAfter is ignored with cliqueStartupType {template.clique_startup_type}: "
            f"use {StartupType.EXPLICIT}"
        )


def _clique_errors(path: str, clique: CliqueTemplate) -> Iterator[FieldError]:
    parents = clique.spec.starts_after
    if "" in parents:
        yield invalid(path, "", "must not contain an empty name")
    if clique.name in parents:
        yield invalid(path, clique.name, "a PodClique cannot start after itself")
    yield from (duplicate(path, name) for name in duplicates(parents))


def cycles(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Cycles of cliques that wait for each other, each in its order. Every clique that can never start is in
    a returned cycle or waits for one. Takes time linear in the number of entries, and no recursion."""
    parents = {
        name: [each for each in before if each in after and each != name] for name, before in after.items()
    }
    never_started = _never_started(parents)
    found: list[list[str]] = []
    seen: dict[str, str] = {}
    for start in parents:
        walk, name = [], start
        while name in never_started and name not in seen:
            seen[name] = start
            walk.append(name)
            name = next(each for each in parents[name] if each in never_started)
        if walk and seen[name] == start:
            found.append(walk[walk.index(name) :])
    return found


def _never_started(parents: Mapping[str, Sequence[str]]) -> set[str]:
    """The cliques left over when cliques start as soon as all their parents have started."""
    children: defaultdict[str, list[str]] = defaultdict(list)
    for name, before in parents.items():
        for parent in before:
            children[parent].append(name)
    unmet = {name: len(before) for name, before in parents.items()}
    ready = [name for name, count in unmet.items() if not count]
    while ready:
        for child in children[ready.pop()]:
            unmet[child] -= 1
            if not unmet[child]:
                ready.append(child)
    return {name for name, count in unmet.items() if count}
