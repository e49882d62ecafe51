"""The records of versions fit the marks in the tests."""

from __future__ import annotations

from tools.versions.check import mark_problems, record_problems
from tools.versions.marks import all_marks

from grove.local.build.versions import KUBERNETES, default_minor
from tools.versions import records


def test_every_mark_names_a_claim() -> None:
    assert list(mark_problems(all_marks())) == []


def test_records_fit_the_marks() -> None:
    default = default_minor({})
    found = {minor: records.load(minor) for minor in {*records.recorded_versions(), default}}
    assert list(record_problems(found, all_marks(), default, KUBERNETES)) == []
