"""docs/scenarios.md explains every identifier of a specification that a test uses."""

from __future__ import annotations

import re

import pytest

from tests.shared import ROOT

PAGE = (ROOT / "docs/scenarios.md").read_text()
ROWS = set(re.findall(r"^\| ([A-Z]+\d+) \|", PAGE, re.MULTILINE))
UPSTREAM = "gs|gt|ru|so|tas|od|rs"
"""Scenarios of upstream: these families are recognised anywhere in a test."""
RULES = "b|v|cd|df|x|p|k|g|i|j|l|o"
"""Rules for NVLink domains: recognised in names of tests, where nothing else looks like them."""

IN_NAMES = re.compile(rf"(?:^|_)((?:{UPSTREAM}|{RULES})\d+)(?=_|$)")
IN_TEXT = re.compile(rf"\b((?:{UPSTREAM.upper()})\d+)\b")


def identifiers(source: str) -> set[str]:
    """The identifiers in the names of test functions and, for upstream's scenarios, in all of the text."""
    names = re.findall(r"def (test_\w+)", source)
    in_names = {found.upper() for name in names for found in IN_NAMES.findall(name)}
    return in_names | set(IN_TEXT.findall(source))


SOURCES = [
    path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path.name != "test_scenarios_page.py"
]


def test_each_identifier_of_a_test_has_a_row():
    used = {
        (found, str(path.relative_to(ROOT))) for path in SOURCES for found in identifiers(path.read_text())
    }
    assert {found for found, _ in used} >= {"GT1", "RU16", "OD9", "TAS13", "B10", "V3", "CD5"}
    assert sorted((found, path) for found, path in used if found not in ROWS) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def test_gt1_gt2_replica_restarts():", {"GT1", "GT2"}),
        ("def test_domain_is_split_b6():", {"B6"}),
        ('"""TAS3 and TAS14."""', {"TAS3", "TAS14"}),
        ("def test_v1beta1_is_read():", set()),
    ],
    ids=["two in a name", "at the end", "in a docstring", "a version"],
)
def test_identifier_is_recognised(source, found):
    assert identifiers(source) == found


def test_each_test_file_on_the_page_exists():
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_each_identifier_has_one_row():
    rows = re.findall(r"^\| ([A-Z]+\d+) \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(set(rows))
