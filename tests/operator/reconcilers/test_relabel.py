"""Objects that were relabelled out of sight get back what they are found by, and nothing else."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Target
from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.kube.client.decoding import Object
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.reconcilers.relabel import relabel_existing

WANTED = labels.managed("w") | {labels.SET_REPLICA: "0", labels.TEMPLATE_HASH: "new"}


def existing_object(found: dict[str, str], state: IntentState = IntentState.FOUND) -> Outcome:
    intent = Create(Target("v1", "Pod", "p", "default"), {"metadata": {"name": "p", "labels": WANTED}})
    existing = Object(ObjectMeta(name="p", uid="u", resource_version="7", labels=found))
    return Outcome((Result(intent, state, "p", "u", existing=existing),))


@pytest.mark.parametrize("key", [labels.MANAGED_BY, labels.PART_OF, labels.SET_REPLICA])
def test_a_label_that_it_is_found_by_is_put_back(key):
    (patch,) = relabel_existing(existing_object({**WANTED, key: "other"}))
    assert patch.body["metadata"] == {"uid": "u", "resourceVersion": "7", "labels": {key: WANTED[key]}}


def test_a_group_that_it_is_not_in_is_taken_off():
    (patch,) = relabel_existing(existing_object({**WANTED, labels.GROUP: "g"}))
    assert patch.body["metadata"]["labels"] == {labels.GROUP: None}


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (existing_object(WANTED), "it only had not been seen yet"),
        (existing_object({**WANTED, labels.TEMPLATE_HASH: "old"}), "it is what it was made from"),
        (existing_object({}, IntentState.WAITING), "it is on its way out"),
    ],
)
def test_others_are_left_to_the_plan(outcome, why):
    assert relabel_existing(outcome) == [], why
