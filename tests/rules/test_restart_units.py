"""The syntax of units that annotations restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.naming.annotations import RESTART_PREFIX
from grove.rules.restart_units import RestartUnit, parse_unit, unit_problem
from tests.plan.builders import a_set, read_set

TEMPLATE = read_set(a_set("router:1 worker:2", "decode:2/1=worker")).spec.template


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("all", RestartUnit()),
        ("0", RestartUnit(0)),
        ("12", RestartUnit(12)),
        ("all.router", RestartUnit(None, "router")),
        ("0.decode.1", RestartUnit(0, "decode", 1)),
        ("", None),
        ("01", None),
        ("-1", None),
        ("٣", None),
        ("1٣", None),
        ("0.", None),
        ("0..1", None),
        ("0.decode.1.worker", None),
        ("0.decode.x", None),
        ("All", None),
        ("9" * 5000, None),
    ],
)
def test_unit_is_parsed(text, unit):
    assert parse_unit(RESTART_PREFIX + text) == unit
    if unit is not None:
        assert unit.annotation == RESTART_PREFIX + text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("all", ""),
        ("7", ""),
        ("0.router", ""),
        ("0.worker", ""),
        ("all.decode.3", ""),
        ("0.router.0", "restarts nothing: no group router: choose one of decode"),
        ("0.x", "restarts nothing: no clique or group x: choose one of router, worker, decode"),
    ],
)
def test_problem_of_unit_names_the_remedy(text, problem):
    assert unit_problem(RESTART_PREFIX + text, TEMPLATE) == problem


@given(st.text())
def test_any_text_has_a_verdict(text):
    unit = parse_unit(RESTART_PREFIX + text)
    assert unit is None or unit.annotation == RESTART_PREFIX + text
    unit_problem(RESTART_PREFIX + text, TEMPLATE)
