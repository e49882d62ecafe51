"""Plans that repeat are told from plans that write one object several times."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Delete, Intent, Patch, Status, Target, uid_of
from grove.operator.engine.key_state import KeyState
from grove.operator.engine.no_effect import has_no_effect
from grove.operator.keys import SetKey

KEY = SetKey("ns", "wl")
TARGET = Target("grove.io/v1alpha1", "PodCliqueSet", "wl", "ns")


def status(updated: int, version: str) -> Status:
    return Status(TARGET, {"metadata": {"resourceVersion": version}, "status": {"updatedReplicas": updated}})


def started(at: str) -> Status:
    """Another writer removes the decision again and again."""
    return Status(TARGET, {"status": {"updateProgress": {"updateStartedAt": at}}})


def patch(finalizers: list[str], version: str) -> Patch:
    return Patch(TARGET, {"metadata": {"resourceVersion": version, "finalizers": finalizers}})


def nomination(node: str) -> Status:
    """Of a pod that the same plan creates: its UID is not known when the write is planned."""
    created = Create(TARGET, {})
    return Status(TARGET, {"metadata": {"uid": uid_of(created)}, "status": {"nominatedNodeName": node}})


@pytest.mark.parametrize(
    ("first", "second", "repeated"),
    [
        (status(1, "5"), status(1, "6"), True),
        (status(1, "5"), status(2, "6"), False),
        (started("2026-11-17T10:00:00Z"), started("2026-11-17T10:00:07Z"), True),
        (patch(["a"], "5"), patch(["a"], "6"), True),
        (patch(["a"], "5"), patch([], "6"), False),
        (nomination("a"), nomination("a"), True),
        (nomination("a"), nomination("b"), False),
        (Create(TARGET, {"spec": 1}), Create(TARGET, {"spec": 2}), True),
        (Create(TARGET, {}), Delete(TARGET), False),
    ],
)
def test_plan_repeats_if_objects_and_content_are_equal(first: Intent, second: Intent, repeated: bool) -> None:
    state = KeyState()
    assert not has_no_effect(KEY, state, [first])
    assert has_no_effect(KEY, state, [second]) is repeated


def test_plan_without_writes_never_repeats() -> None:
    state = KeyState()
    assert not has_no_effect(KEY, state, [])
    assert not has_no_effect(KEY, state, [])
