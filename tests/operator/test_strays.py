"""Objects that were relabelled out of sight get back what they are found by, and nothing else."""

from __future__ import annotations

import pytest

from grove.api import labels
from grove.api.intents import Create, Target
from grove.api.meta import ObjectMeta
from grove.kube.outcome import Outcome, Result, State
from grove.kube.wire import Object
from grove.operator.strays import put_back

WANTED = labels.managed("w") | {labels.SET_REPLICA: "0", labels.TEMPLATE_HASH: "new"}


def met(found: dict[str, str], state: State = State.FOUND) -> Outcome:
    intent = Create(Target("v1", "Pod", "p", "default"), {"metadata": {"name": "p", "labels": WANTED}})
    existing = Object(ObjectMeta(name="p", uid="u", resource_version="7", labels=found))
    return Outcome((Result(intent, state, "p", "u", existing=existing),))


@pytest.mark.parametrize("key", [labels.MANAGED_BY, labels.PART_OF, labels.SET_REPLICA])
def test_a_label_that_it_is_found_by_is_put_back(key):
    (patch,) = put_back(met({**WANTED, key: "other"}))
    assert patch.body["metadata"] == {"uid": "u", "resourceVersion": "7", "labels": {key: WANTED[key]}}


def test_a_group_that_it_is_not_in_is_taken_off():
    (patch,) = put_back(met({**WANTED, labels.GROUP: "g"}))
    assert patch.body["metadata"]["labels"] == {labels.GROUP: None}


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (met(WANTED), "it only had not been seen yet"),
        (met({**WANTED, labels.TEMPLATE_HASH: "old"}), "it is what it was made from"),
        (met({}, State.WAITING), "it is on its way out"),
    ],
)
def test_others_are_left_to_the_plan(outcome, why):
    assert put_back(outcome) == [], why
