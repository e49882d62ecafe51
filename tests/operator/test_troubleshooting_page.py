"""docs/troubleshooting.md has every event reason, error code, condition type and condition reason."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest

from grove.api import conditions
from grove.api.conditions import ConditionType
from grove.api.error_codes import ErrorCode
from grove.api.event_reasons import EventReason
from tests.shared import ROOT

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
CONDITION_REASONS = [
    each
    for each in vars(conditions).values()
    if isinstance(each, type)
    and issubclass(each, StrEnum)
    and each.__module__ == conditions.__name__
    and each is not ConditionType
]


def in_tables(section: str) -> set[str]:
    """Names in the tables of a section."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return {
        name for row in re.findall(r"^\|.*\|$", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("Events", EventReason),
        ("Error codes", ErrorCode),
        ("Conditions", ConditionType),
        *(("Conditions", reasons) for reasons in CONDITION_REASONS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_member_is_on_the_page(section, names):
    assert sorted({member.value for member in names} - in_tables(section)) == []


def test_reasons_of_all_conditions_are_found():
    assert len(CONDITION_REASONS) >= 7
