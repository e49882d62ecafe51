"""An order of start that can never be met: after oneself, after nobody, or round in a circle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSetTemplate, StartupType
from grove.rules.model import FieldError, duplicate, invalid
from grove.rules.podcliqueset.cliques import duplicates

_CLIQUES = "spec.template.cliques"
_MAX_NAMED = 8


def errors(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """What is wrong with `startsAfter`; it only counts where the start-up type is explicit."""
    if template.clique_startup_type is not StartupType.EXPLICIT:
        return
    for index, clique in enumerate(template.cliques):
        yield from _of_clique(f"{_CLIQUES}[{index}].spec.startsAfter", clique)
    known = {clique.name for clique in template.cliques}
    named = (name for clique in template.cliques for name in clique.spec.starts_after)
    if unknown := sorted({name for name in named if name and name not in known}):
        yield invalid(f"{_CLIQUES}.startsAfter", unknown, "unknown PodClique names found")
    after = {clique.name: clique.spec.starts_after for clique in template.cliques}
    for circle in cycles(after):
        wait = " -> ".join([*circle[:_MAX_NAMED], *(["..."] if len(circle) > _MAX_NAMED else []), circle[0]])
        yield invalid(_CLIQUES, circle, f"circular dependencies: {wait}")


def warnings(template: PodCliqueSetTemplate) -> Iterator[str]:
    """`startsAfter` where nobody reads it."""
    if template.clique_startup_type is StartupType.EXPLICIT:
        return
    if any(clique.spec.starts_after for clique in template.cliques):
        yield (
            f"{_CLIQUES}: startsAfter is ignored with cliqueStartupType {template.clique_startup_type}; "
            f"it needs {StartupType.EXPLICIT}"
        )


def _of_clique(path: str, clique: CliqueTemplate) -> Iterator[FieldError]:
    parents = clique.spec.starts_after
    if "" in parents:
        yield invalid(path, "", "must not contain an empty name")
    if clique.name in parents:
        yield invalid(path, clique.name, "a PodClique cannot start after itself")
    yield from (duplicate(path, name) for name in duplicates(parents))


def cycles(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Names that wait for each other, each circle in its order: one at least for everybody who can never
    start. Takes time linear in the number of entries, and no recursion."""
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
    """Who never gets a turn when everybody starts whose parents have started."""
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
