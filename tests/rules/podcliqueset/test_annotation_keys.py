"""Warnings about misspelled and misplaced annotations."""

from __future__ import annotations

import difflib

import pytest

from grove import timing
from grove.rules import decode
from grove.rules.podcliqueset import annotation_keys, validation
from tests.rules.builders import changed, workload
from tests.rules.fabric.domain_annotations import KEY, NAME, OFF, SCOPE
from tests.rules.messages import C, G


def on_set(key, value="x"):
    return {f'metadata.annotations["{key}"]': value}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            on_set("grove.io/auto-mnvl"),
            f"metadata.annotations.grove.io/auto-mnvl is not known and has no effect: did you mean {KEY}?",
        ),
        (on_set("grove.io/Force-Delete-After"), "did you mean grove.io/force-delete-after?"),
        (on_set("grove.io/colour"), "grove.io/colour is not known and has no effect"),
        (
            {f"{C}.annotations": {"nvidia.com/compute-domain": "team"}},
            f"{C}.annotations.nvidia.com/compute-domain is not known and has no effect: did you mean {NAME}?",
        ),
        ({f"{C}.annotations": {"nvidia.com/ComputeDomain": "team"}}, f"did you mean {NAME}?"),
        ({f"{C}.annotations": {NAME + "-scop": "replica"}}, f"did you mean {SCOPE}?"),
        (
            {f"{C}.annotations": {KEY: "enabled"}},
            f"{C}.annotations.{KEY} is ignored: set it on the PodCliqueSet itself",
        ),
        ({f"{G}.annotations": {SCOPE: "replica"}}, f"{G}.annotations.{SCOPE} is ignored: set it on cliques"),
        (
            on_set("grove.io/shared-with-namespaces", "*"),
            "grove.io/shared-with-namespaces is ignored: it is for ResourceClaimTemplates",
        ),
        (on_set("grove.io/restart-first"), "grove.io/restart-first restarts nothing: write all or"),
        (on_set("grove.io/restart-0.z"), "grove.io/restart-0.z restarts nothing: no clique or group z"),
        (on_set("grove.io/restart-0.z.1"), "grove.io/restart-0.z.1 restarts nothing: no group z"),
        (
            {f"{C}.annotations": {"grove.io/restart-all": "1"}},
            f"{C}.annotations.grove.io/restart-all is ignored: set it on the PodCliqueSet itself",
        ),
        (
            {f'metadata.labels["{KEY}"]': "enabled"},
            f"metadata.labels.{KEY} has no effect: it is an annotation",
        ),
    ],
)
def test_annotation_without_effect_is_warned_of(changes, expected):
    after = changed(workload(), changes)
    (warning,) = validation.on_create(after, OFF).warnings
    assert expected in warning
    assert validation.on_update(workload(), after, OFF).warnings == (warning,)
    assert validation.on_update(after, changed(after, {"spec.replicas": 2}), OFF).warnings == ()


@pytest.mark.parametrize(
    "changes",
    [
        on_set("example.com/colour"),
        on_set("nvidia.com/gpu.product"),
        on_set("scheduling.grove.io/volcano-queue"),
        on_set("grove.io/disable-managed-resource-protection", "true"),
        {f"{G}.annotations": {"grove.io/mnnvl-group": "none"}},
        {'metadata.labels["grove.io/team"]': "x"},
    ],
)
def test_other_annotations_are_not_warned_of(changes):
    assert validation.on_create(changed(workload(), changes), OFF).warnings == ()


@pytest.fixture
def compared(monkeypatch):
    """The keys that are compared with all known ones."""
    found, compare = [], difflib.get_close_matches

    def count(key, *arguments, **options):
        found.append(key)
        return compare(key, *arguments, **options)

    monkeypatch.setattr(difflib, "get_close_matches", count)
    return found


MANY = {f"grove.io/unknown-{number}": "x" for number in range(200)}


def test_update_compares_only_the_keys_that_it_adds(compared):
    old = changed(workload(), {"metadata.annotations": MANY, f"{C}.annotations": MANY})
    new = changed(old, {f'{C}.annotations["grove.io/added"]': "x"})
    (warning,) = validation.on_update(old, new, OFF).warnings
    assert f"{C}.annotations.grove.io/added is not known" in warning
    assert compared == ["grove.io/added"]


def test_key_that_an_update_moves_is_warned_of():
    old, new = (
        changed(workload(), change)
        for change in (on_set("grove.io/x"), {f"{C}.annotations": {"grove.io/x": ""}})
    )
    (warning,) = validation.on_update(old, new, OFF).warnings
    assert f"{C}.annotations.grove.io/x" in warning


def test_number_of_compared_keys_is_limited(compared):
    before, after = (
        decode.workload(each) for each in (workload(), changed(workload(), {"metadata.annotations": MANY}))
    )
    assert len(list(annotation_keys.warnings(after, OFF))) == timing.ANNOTATION_WARNINGS
    assert len(list(annotation_keys.update_warnings(before, after, OFF))) == timing.ANNOTATION_WARNINGS
    assert len(compared) == 2 * timing.ANNOTATION_WARNINGS
