"""Each event reason and each condition type that the operator writes has a place on a time line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grove
from grove.api.conditions import ConditionType, TopologyLevelsReason
from grove.api.event_reasons import EventReason
from grove.dashboard.pages.meanings import OF_CONDITIONS, OF_EVENTS, SAME_AS_EVENT
from grove.dynamo.backends.kueue import WORKLOAD_NOT_ADMITTED
from grove.reasons.codes import ReasonCode

SOURCE = Path(grove.__file__).parent
WRITERS = {"PlannedEvent": 1, "EventRecord": 1, "_event": 1, "domain_event": 2, "warning_events": 2}
"""Functions that make events, with the position of the reason."""


@cache
def literals() -> list[tuple[str, str]]:
    """Modules and reasons that are written as text, not as a member of an enumeration."""
    return list(_literals())


def _literals() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                position = WRITERS.get(name)
                if position is not None and len(node.args) > position:
                    reason = node.args[position]
                    if isinstance(reason, ast.Constant) and isinstance(reason.value, str):
                        yield str(file.relative_to(SOURCE)), reason.value


def test_every_event_reason_of_the_operator_has_a_meaning():
    emitted = {*EventReason, *ReasonCode, *TopologyLevelsReason, WORKLOAD_NOT_ADMITTED}
    assert {reason for reason in emitted if reason not in OF_EVENTS} == set()


def test_every_reason_that_is_written_as_text_has_a_meaning():
    found = literals()
    assert ("dynamo/reconcile/events.py", "Scaled") in found, "the search finds reasons"
    assert [each for each in found if each[1] not in OF_EVENTS] == []


def test_table_has_no_reason_that_is_never_emitted():
    known = {*EventReason, *ReasonCode, *TopologyLevelsReason, WORKLOAD_NOT_ADMITTED}
    written = {reason for _, reason in literals()} | {"TopologyDefinitionNotFound"}
    assert {str(reason) for reason in OF_EVENTS} - {str(each) for each in known} - written == set()


def test_every_condition_type_has_a_meaning():
    assert set(OF_CONDITIONS) == set(ConditionType)


def test_conditions_are_warnings_only_where_they_have_a_title():
    assert [each for each in OF_CONDITIONS.values() if not each.problems <= each.titles.keys()] == []


def test_events_that_repeat_conditions_exist():
    assert {reason for reason in SAME_AS_EVENT.values() if reason not in OF_EVENTS} == set()
