"""Claims of different parts of a set that could have one name: then one of them would never be made, and the
pods of one part would hold what another shares.

A name is a row of words: those of the parts, of the template, and numbers. Two rows that fit word for word
are one name, whichever numbers it takes; counts change, so any number may come up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from grove.api.types.common import ResourceSharing, SharingScope
from grove.rules.decode import Workload
from grove.rules.model import FieldError, invalid

_TEMPLATE = "spec.template"
_MAX_PAIRS = 10_000
_NUMBER = None
_Words = tuple[str | None, ...]


class _Entry(Struct, frozen=True):
    """Claims that are made from one entry of a part's `resourceSharing`."""

    path: str
    part: str
    template: str
    words: _Words


def errors(workload: Workload) -> Iterator[FieldError]:
    """Entries whose claims could have the names of another part's, each told with the first such part."""
    by_form: dict[_Words, list[_Entry]] = {}
    for entry in _entries(workload):
        by_form.setdefault(_form(entry.words), []).append(entry)
    told: set[str] = set()
    for first, second in islice(_pairs(by_form.values()), _MAX_PAIRS):
        if second.path not in told and (name := _common(first.words, second.words)) is not None:
            told.add(second.path)
            claim = f"{workload.metadata.effective_name}-{name}"
            why = f"claims of {first.path} can have the same names, such as {claim}: rename one of the two"
            yield invalid(second.path, second.template, why)


def _pairs(forms: Iterable[list[_Entry]]) -> Iterator[tuple[_Entry, _Entry]]:
    for entries in forms:
        for at, second in enumerate(entries):
            yield from ((first, second) for first in entries[:at] if first.part != second.part)


def _entries(workload: Workload) -> Iterator[_Entry]:
    template = workload.template
    yield from _of_part(f"{_TEMPLATE}.resourceSharing", template.resource_sharing, ())
    around: dict[str, _Words] = {}
    for index, group in enumerate(template.pod_clique_scaling_groups):
        path = f"{_TEMPLATE}.podCliqueScalingGroups[{index}].resourceSharing"
        words = (_NUMBER, *group.name.split("-"))
        yield from _of_part(path, group.resource_sharing, words)
        around |= dict.fromkeys(group.clique_names, (*words, _NUMBER))
    for index, clique in enumerate(template.cliques):
        path = f"{_TEMPLATE}.cliques[{index}].resourceSharing"
        words = (*around.get(clique.name, (_NUMBER,)), *clique.name.split("-"))
        yield from _of_part(path, clique.resource_sharing, words)


def _of_part(path: str, shared: Sequence[ResourceSharing], words: _Words) -> Iterator[_Entry]:
    for index, each in enumerate(shared):
        whose = "all" if each.scope is SharingScope.ALL_REPLICAS else _NUMBER
        if each.name:
            row = (*words, whose, *each.name.split("-"))
            yield _Entry(f"{path}[{index}].name", path, each.name, row)


def _form(words: _Words) -> _Words:
    """What rows have in common that fit: where their numbers are, and the words between them."""
    return tuple(_NUMBER if _is_number(word) else word for word in words)


def _is_number(word: str | None) -> bool:
    if word is _NUMBER:
        return True
    return word.isascii() and word.isdecimal() and (word == "0" or not word.startswith("0"))


def _common(first: _Words, second: _Words) -> str | None:
    """A name that both rows can have, after that of the set."""
    found: list[str] = []
    for one, other in zip(first, second, strict=True):
        if one is not _NUMBER and other is not _NUMBER and one != other:
            return None
        found.append(one if one is not _NUMBER else other if other is not _NUMBER else "0")
    return "-".join(found)
