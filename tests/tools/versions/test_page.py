"""The page of Kubernetes versions: cells follow the claims and the recorded outcomes."""

from __future__ import annotations

import pytest
from tools.versions.features import NO, OBJECTS, YES, Claim
from tools.versions.page import answer, render
from tools.versions.records import Mark, Record, load, merge, save

GANG = Mark("tests/test_a.py::test_a", "gang", "kai-scheduler")


def record(outcome: str, mark: Mark = GANG, date: str = "2026-11-17") -> Record:
    return Record(*mark, outcome, 1, "1.36.3", date)


@pytest.mark.parametrize(
    ("claim", "outcomes", "cell"),
    [
        (Claim(YES), ["passed"], "yes"),
        (Claim(OBJECTS), ["passed", "passed"], "objects"),
        (Claim(YES), [], "not tried"),
        (Claim(YES), ["skipped"], "not tried"),
        (Claim(YES), ["passed", "skipped"], "not tried"),
        (Claim(YES), ["passed", "failed", "skipped"], "**fails**"),
        (Claim(YES, since="1.37"), ["passed"], "no"),
        (Claim(YES, since="1.36"), ["passed"], "yes"),
        (Claim(NO), [], "no"),
    ],
)
def test_cell_follows_claim_and_outcomes(claim: Claim, outcomes: list[str], cell: str) -> None:
    assert answer(claim, "1.36", map(record, outcomes)) == cell


def test_page_has_versions_as_columns_and_links_tests() -> None:
    text = render({"1.37": [], "1.36": [record("passed")]}, {GANG})
    assert "| 1.37 | not tried | | | | |\n| 1.36 | 1.36.3 | 2026-11-17 | 1 | 0 | 0 |" in text
    _, _, kai = text.partition("## `kai-scheduler`\n")
    assert "| a gang is bound completely, or no pod of it | not tried | objects |  |" in kai
    assert "| kai-scheduler | [test_a](../tests/test_a.py) |" in text


def test_test_that_failed_once_counts_as_failed() -> None:
    other = Mark(GANG.test, "priority", GANG.scheduler)
    text = render({"1.36": [record("failed"), record("passed", other)]}, {GANG, other})
    assert "| 1.36 | 1.36.3 | 2026-11-17 | 0 | 0 | 1 |" in text


def test_saved_records_are_read_again(tmp_path) -> None:
    (tmp_path / "tests/versions").mkdir(parents=True)
    found = [record("passed"), record("failed", Mark("tests/test_a.py::test_0", "gang", "volcano"))]
    save("1.36", found, tmp_path)
    assert load("1.36", tmp_path) == found[::-1]


def test_merge_replaces_and_drops_records() -> None:
    gone = Mark("tests/test_a.py::test_gone", "gang", "volcano")
    kept = Mark("tests/test_a.py::test_kept", "gang", "volcano")
    before = [record("failed", date="2026-01-01"), record("passed", gone), record("passed", kept)]
    after = merge(before, [record("passed")], [GANG, kept])
    assert sorted(each.mark for each in after) == [GANG, kept]
    assert [each.outcome for each in after if each.mark == GANG] == ["passed"]
