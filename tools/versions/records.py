"""The outcomes of marked tests on each version of Kubernetes, in `tests/versions/<minor version>.json`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("tests/versions")
PASSED, SKIPPED, FAILED = OUTCOMES = ("passed", "skipped", "failed")
"""From best to worst: the outcome of a test is that of its worst case."""


class Mark(NamedTuple):
    """A test and what it proves. The test is named without its parameters."""

    test: str
    feature: str
    scheduler: str


class Record(msgspec.Struct, frozen=True):
    """The latest outcome of a marked test."""

    test: str
    feature: str
    scheduler: str
    outcome: str
    cases: int
    """Number of its parameters that carry the mark."""
    release: str
    """The release of Kubernetes, such as 1.36.3."""
    date: str

    @property
    def mark(self) -> Mark:
        return Mark(self.test, self.feature, self.scheduler)


def load(minor: str, root: Path = ROOT) -> list[Record]:
    """The records of a minor version; none if no test was recorded on it."""
    file = root / FOLDER / f"{minor}.json"
    return msgspec.json.decode(file.read_bytes(), type=list[Record]) if file.is_file() else []


def save(minor: str, records: Iterable[Record], root: Path = ROOT) -> Path:
    """Write the records, one on a line, so that a diff shows what changed."""
    file = root / FOLDER / f"{minor}.json"
    lines = [msgspec.json.encode(record).decode() for record in sorted(records, key=lambda each: each.mark)]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return file


def merge(before: Iterable[Record], now: Iterable[Record], marks: Iterable[Mark]) -> list[Record]:
    """The records after a run: new ones replace earlier ones, those of marks that are gone are dropped."""
    latest = {record.mark: record for record in (*before, *now)}
    return [latest[mark] for mark in set(marks) if mark in latest]


def recorded_versions(root: Path = ROOT) -> list[str]:
    """The minor versions that have a file."""
    return sorted(file.stem for file in (root / FOLDER).glob("*.json"))
