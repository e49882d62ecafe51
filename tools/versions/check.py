"""Whether the records fit the marks in the tests: what is wrong, with the command that corrects it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tools.versions.features import mark_problem
from tools.versions.records import Mark, Record


def mark_problems(marks: Collection[Mark]) -> Iterator[str]:
    """Marks that name nothing that a test can prove."""
    for mark in sorted(marks):
        if problem := mark_problem(mark.feature, mark.scheduler):
            yield f"{mark.test}: {problem}"


def record_problems(
    records: Mapping[str, Collection[Record]],
    marks: Collection[Mark],
    default: str,
    supported: Collection[str],
) -> Iterator[str]:
    """Records of tests or marks that no longer exist, and tests without a record on the default version."""
    for minor, found in records.items():
        file, again = f"tests/versions/{minor}.json", f"run make versions KUBERNETES={minor}"
        if minor not in supported:
            yield f"{file}: not a supported version of Kubernetes; delete the file"
            continue
        for record in found:
            if record.mark not in marks:
                yield f"{file}: {_named(record.mark)} no longer exists; {again}"
        if minor == default:
            for mark in sorted(set(marks) - {record.mark for record in found}):
                yield f"{file}: {_named(mark)} has no record; {again}"


def _named(mark: Mark) -> str:
    return f"{mark.test} (proves {mark.feature} with {mark.scheduler})"
