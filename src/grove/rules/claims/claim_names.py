"""Refuses sets in which claims of different parts could get the same name: only one of them would be created,
and pods of one part would use the claim of another.

A name is a sequence of words: those of the parts and of the template, and replica indices. Two sequences that
match word for word can give the same name; an index matches any number, because counts change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from grove.api.field_errors import FieldError, invalid
from grove.api.types.common import ResourceSharing, SharingScope
from grove.rules.decode import Workload

_TEMPLATE = "spec.template"
_MAX_PAIRS = 10_000
_NUMBER = None
_Words = tuple[str | None, ...]


class _Entry(Struct, frozen=True):
    """The claims of one entry of a part's `resourceSharing`."""

    path: str
    part: str
    template: str
    words: _Words


def errors(workload: Workload) -> Iterator[FieldError]:
    """Errors for entries whose claims could have the name of another part's claim, one for each entry."""
    by_form: dict[_Words, list[_Entry]] = {}
    for entry in _entries(workload):
        by_form.setdefault(_form(entry.words), []).append(entry)
    reported: set[str] = set()
    for first, second in islice(_pairs(by_form.values()), _MAX_PAIRS):
        if second.path not in reported and (name := _common(first.words, second.words)) is not None:
            reported.add(second.path)
            claim = f"{workload.metadata.effective_name}-{name}"
            why = (
                f"claims of {first.path} can have the same name, such as {claim}: rename one of the templates"
            )
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
        replica = "all" if each.scope is SharingScope.ALL_REPLICAS else _NUMBER
        if each.name:
            claim_words = (*words, replica, *each.name.split("-"))
            yield _Entry(f"{path}[{index}].name", path, each.name, claim_words)


def _form(words: _Words) -> _Words:
    """The words with all numbers replaced by `_NUMBER`, which all sequences that can give one name share."""
    return tuple(_NUMBER if _is_number(word) else word for word in words)


def _is_number(word: str | None) -> bool:
    if word is _NUMBER:
        return True
    return word.isascii() and word.isdecimal() and (word == "0" or not word.startswith("0"))


def _common(first: _Words, second: _Words) -> str | None:
    """A name that both sequences can give, without the name of the set."""
    found: list[str] = []
    for one, other in zip(first, second, strict=True):
        if one is not _NUMBER and other is not _NUMBER and one != other:
            return None
        found.append(one if one is not _NUMBER else other if other is not _NUMBER else "0")
    return "-".join(found)
