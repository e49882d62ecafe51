"""Existing objects without their selector labels get these labels back, and nothing else."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Target
from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.kube.client.decoding import Object
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.engine.relabel import relabel_existing

WANTED = labels.managed("w") | {labels.SET_REPLICA: "0", labels.TEMPLATE_HASH: "new"}


def existing_object(
    found: dict[str, str], state: IntentState = IntentState.FOUND, kind: str = "Pod"
) -> Outcome:
    intent = Create(Target("v1", kind, "p", "default"), {"metadata": {"name": "p", "labels": WANTED}})
    existing = Object(ObjectMeta(name="p", uid="u", resource_version="7", labels=found))
    return Outcome((Result(intent, state, "p", "u", existing=existing),))


@pytest.mark.parametrize("key", [labels.MANAGED_BY, labels.PART_OF, labels.SET_REPLICA])
def test_changed_selector_label_is_restored(key):
    (patch,) = relabel_existing(existing_object({**WANTED, key: "other"}))
    assert patch.body["metadata"] == {"uid": "u", "resourceVersion": "7", "labels": {key: WANTED[key]}}


def test_wrong_group_label_is_removed():
    (patch,) = relabel_existing(existing_object({**WANTED, labels.GROUP: "g"}))
    assert patch.body["metadata"]["labels"] == {labels.GROUP: None}


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (existing_object(WANTED), "the cache was only behind"),
        (existing_object({**WANTED, labels.TEMPLATE_HASH: "old"}), "the template hash is no selector label"),
        (existing_object({}, IntentState.WAITING), "it is terminating"),
    ],
)
def test_objects_with_selector_labels_are_not_patched(outcome, why):
    assert relabel_existing(outcome) == [], why


@pytest.mark.parametrize("kind", ["Role", "RoleBinding"])
def test_rbac_object_without_labels_is_deleted(kind):
    (delete,) = relabel_existing(existing_object({}, kind=kind))
    assert (delete.id, delete.uid) == (f"delete {kind} default/p", "u")


def test_object_without_our_labels_is_left_alone():
    """Of a DynamoGraphDeployment, which may use objects of other owners: their labels are not ours."""
    intent = Create(Target("v1", "Role", "p", "default"), {"metadata": {"name": "p", "labels": {"a": "b"}}})
    existing = Object(ObjectMeta(name="p", uid="u", labels={labels.MANAGED_BY: "Helm"}))
    outcome = Outcome((Result(intent, IntentState.FOUND, "p", "u", existing=existing),))
    assert relabel_existing(outcome) == []
