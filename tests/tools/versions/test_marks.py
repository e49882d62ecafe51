"""Marks are read from the sources of tests, and those that prove nothing are found."""

from __future__ import annotations

import pytest
from tools.versions.check import mark_problems, record_problems
from tools.versions.marks import marks_of
from tools.versions.records import Mark, Record

GANG = Mark("tests/test_a.py::test_a", "gang", "kai-scheduler")
QUEUES = Mark("tests/test_a.py::test_b", "queues", "volcano")


def record(mark: Mark) -> Record:
    return Record(*mark, "passed", 1, "1.36.3", "2026-11-17")


def test_marks_of_tests_and_parameters_are_found() -> None:
    source = """
@pytest.mark.proves("gang", scheduler="kai-scheduler")
async def test_a(): ...

@pytest.mark.parametrize("one", [pytest.param(1, marks=pytest.mark.proves("queues", scheduler="volcano")), 2])
def test_b(one): ...

def test_c(): ...
"""
    assert set(marks_of(source, "tests/test_a.py")) == {GANG, QUEUES}


@pytest.mark.parametrize("arguments", ["NAME, scheduler='volcano'", "'gang'", "'gang', scheduler=f()"])
def test_mark_without_literal_names_is_an_error(arguments: str) -> None:
    source = f"@pytest.mark.proves({arguments})\ndef test_a(): ..."
    with pytest.raises(ValueError, match=r"^t.py:2: write pytest.mark.proves"):
        list(marks_of(source, "t.py"))


@pytest.mark.parametrize(
    ("feature", "scheduler", "words"),
    [
        ("gnag", "volcano", "unknown feature 'gnag'; choose one of admission, "),
        ("gang", "slurm", "feature 'gang' has no scheduler 'slurm'; choose one of default-scheduler, "),
        ("queues", "default-scheduler", "default-scheduler does not support 'queues': change the claim in "),
    ],
    ids=["feature", "scheduler", "not supported"],
)
def test_mark_that_proves_nothing_is_found(feature: str, scheduler: str, words: str) -> None:
    (problem,) = mark_problems({Mark("t.py::test_a", feature, scheduler)})
    assert problem.startswith(f"t.py::test_a: {words}")


def test_record_of_a_missing_test_names_the_command() -> None:
    records = {"1.37": [record(GANG)], "1.36": [record(QUEUES)]}
    assert list(record_problems(records, {GANG}, "1.37", ["1.37", "1.36"])) == [
        "tests/versions/1.36.json: tests/test_a.py::test_b (proves queues with volcano) no longer exists; "
        "run make versions KUBERNETES=1.36"
    ]


def test_only_default_version_needs_all_records() -> None:
    records = {"1.37": [record(GANG)], "1.36": []}
    assert list(record_problems(records, {GANG, QUEUES}, "1.37", ["1.37", "1.36"])) == [
        "tests/versions/1.37.json: tests/test_a.py::test_b (proves queues with volcano) has no record; "
        "run make versions KUBERNETES=1.37"
    ]


def test_record_of_unsupported_version_is_found() -> None:
    (problem,) = record_problems({"1.20": [record(GANG)]}, {GANG}, "1.37", ["1.37"])
    assert problem == "tests/versions/1.20.json: not a supported version of Kubernetes; delete the file"
