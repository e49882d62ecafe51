"""PriorityClasses that a set names: those that do not exist are refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.priority_classes import PRIORITY_CLASS
from grove.schedulers.backend import ClusterLookup
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import SUBDOMAIN, C, T

SET, CLIQUE = f"{T}.priorityClassName", f"{C}.spec.podSpec.priorityClassName"
CLIQUE_ERROR = f"{C}.spec.podSpec.spec.priorityClassName"
REMEDY = "create the PriorityClass, or name another one"
LOW, HIGH = (ClusterLookup(PRIORITY_CLASS, name, "") for name in ("low", "high"))
KNOWN = replace(FACTS, found={LOW: {}, HIGH: None})
NO_HIGH = f'{SET}: Not found: "high": {REMEDY}'


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, []),
        ({SET: "low", CLIQUE: "low"}, []),
        ({SET: "high"}, [NO_HIGH]),
        ({SET: "low", CLIQUE: "high"}, [f'{CLIQUE_ERROR}: Not found: "high": {REMEDY}']),
        ({SET: "not-looked-up"}, []),
        ({SET: "High"}, [f'{SET}: Invalid value: "High": {SUBDOMAIN}']),
    ],
)
def test_missing_class_is_refused(changes: dict[str, str], errors: list[str]) -> None:
    assert list(map(str, validation.on_create(changed(workload(), changes), KNOWN).errors)) == errors


def test_stored_set_with_missing_class_can_be_changed() -> None:
    stored = changed(workload(), {SET: "high"})
    assert validation.on_update(stored, changed(stored, {"spec.replicas": 4}), KNOWN).allowed
    assert validation.on_update(stored, changed(stored, {SET: "low"}), KNOWN).allowed
    errors = validation.on_update(changed(stored, {SET: "low"}), stored, KNOWN).errors
    assert list(map(str, errors)) == [NO_HIGH]


def test_each_named_class_is_looked_up_once() -> None:
    body = changed(
        workload(), {SET: "high", CLIQUE: "low", f"{T}.cliques[1].spec.podSpec.priorityClassName": "low"}
    )
    assert validation.lookups(body, FACTS) == (HIGH, LOW)
    assert validation.lookups(workload(), FACTS) == ()
