"""Intents are plain data; a deferred value cannot be mistaken for a known one."""

import msgspec
import pytest

from grove.api.intents import (
    Create,
    DeferredValue,
    Delete,
    Intent,
    Patch,
    Status,
    Target,
    derived,
    uid_of,
)

CLIQUE = Target("grove.io/v1alpha1", "PodClique", "web", "prod")
OWNER = Create(CLIQUE, {"metadata": {"name": "web"}})


def pod_name(uid: str, index: int) -> str:
    return f"web-{uid[:3]}{index}"


@pytest.mark.parametrize(
    ("intent", "expected"),
    [
        (OWNER, "create PodClique prod/web"),
        (Patch(CLIQUE, {}), "patch PodClique prod/web"),
        (Patch(CLIQUE, {}, subresource="scale"), "patch PodClique prod/web scale"),
        (Status(CLIQUE, {}), "status PodClique prod/web"),
        (Delete(CLIQUE), "delete PodClique prod/web"),
        (Create(Target("v1", "Node", "n1"), {}), "create Node n1"),
        (
            Create(Target("v1", "Pod", derived(pod_name, uid_of(OWNER), 1), "prod"), {}),
            "create Pod prod/<pod_name(uid of create PodClique prod/web, 1)>",
        ),
    ],
)
def test_intent_id_names_verb_and_target(intent: Intent, expected: str) -> None:
    assert intent.id == expected


def test_deferred_value_resolves_with_uid() -> None:
    uid, name = uid_of(OWNER), derived(pod_name, uid_of(OWNER), 1)
    assert isinstance(uid, DeferredValue)
    assert isinstance(name, DeferredValue)
    assert (uid.intent, uid.resolve("abcdef")) == (OWNER.id, "abcdef")
    assert (name.intent, name.resolve("abcdef")) == (OWNER.id, "web-abc1")


def test_derived_from_known_uid_is_immediate() -> None:
    name = derived(pod_name, "abcdef", 2)
    assert name == "web-abc2"
    assert not isinstance(name, DeferredValue)


def test_intents_with_deferred_values_compare_by_value() -> None:
    def plan(index: int) -> Create:
        return Create(Target("v1", "Pod", derived(pod_name, uid_of(OWNER), index)), {"owner": uid_of(OWNER)})

    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


@pytest.mark.parametrize(
    "use",
    [
        lambda deferred: f"{deferred}-0",
        lambda deferred: deferred + "-0",
        lambda deferred: "pod-" + deferred,
        str,
    ],
    ids=["format", "append", "prepend", "str"],
)
def test_deferred_value_cannot_be_formatted(use: object) -> None:
    assert callable(use)
    with pytest.raises(TypeError, match="derived"):
        use(uid_of(OWNER))


def test_deferred_value_cannot_be_encoded() -> None:
    with pytest.raises(TypeError):
        msgspec.json.encode({"uid": uid_of(OWNER)})


def test_derived_value_cannot_be_derived_again() -> None:
    with pytest.raises(TypeError, match="derived already"):
        derived(pod_name, derived(pod_name, uid_of(OWNER), 1), 2)
