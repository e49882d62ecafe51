"""Updates of sets with fabric domains: immutable annotations (V20 to V26)."""

from __future__ import annotations

import pytest

from grove.rules.podcliqueset import validation
from tests.rules.builders import bare, changed, clique, workload
from tests.rules.fabric.domain_annotations import (
    AUTO,
    ENABLED,
    GPUS,
    GROUP,
    KEY,
    NAME,
    NO_EXPLICIT,
    OFF,
    ON,
    OPTED_OUT,
    SCOPE,
    annotated,
    named,
)
from tests.rules.fabric.test_domains import RESERVED, TAKEN, USED
from tests.rules.messages import C

GROUPED = {f'metadata.annotations["{GROUP}"]': "none"}
UPDATES = [
    (
        GPUS,
        {**GPUS, **ENABLED},
        [f"{AUTO}: Forbidden: {KEY} cannot be added after creation"],
    ),
    (ENABLED, {}, [f"{AUTO}: Forbidden: {KEY} cannot be removed after creation"]),
    (
        ENABLED,
        OPTED_OUT,
        [
            f'{AUTO}: Invalid value: "disabled": {KEY} is immutable: it cannot be changed '
            'from "enabled" to "disabled"'
        ],
    ),
    ({}, named("team"), [f"{C}.annotations.{NAME}: Forbidden: {NAME} cannot be added after creation"]),
    (named("team"), {}, [f"{C}.annotations.{NAME}: Forbidden: {NAME} cannot be removed after creation"]),
    (
        named("team", scope="replica"),
        named("other", scope="shared"),
        [
            f'{C}.annotations.{NAME}: Invalid value: "other": {NAME} is immutable: it cannot be changed from '
            '"team" to "other"',
            f'{C}.annotations.{SCOPE}: Invalid value: "shared": {SCOPE} is immutable: it cannot be changed '
            'from "replica" to "shared"',
        ],
    ),
    (
        named("team"),
        named("team", scope="replica"),
        [f"{C}.annotations.{SCOPE}: Forbidden: {SCOPE} cannot be added after creation"],
    ),
    (
        named("team", scope="replica"),
        named("team"),
        [f"{C}.annotations.{SCOPE}: Forbidden: {SCOPE} cannot be removed after creation"],
    ),
    (
        {**GPUS, **named("team")},
        {**GPUS, **named("team"), **TAKEN},
        [f"{C}.spec.podSpec.resourceClaims[0].name: {RESERVED}"],
    ),
]
"""V20 to V22, V24; and V7, by which pods would leave their domain."""


@pytest.mark.parametrize(("old", "new", "errors"), UPDATES)
@pytest.mark.parametrize("facts", [ON, OFF], ids=["on", "off"])
def test_changed_annotation_is_refused(old, new, errors, facts):
    before, after = changed(workload(), old), changed(workload(), new)
    assert list(map(str, validation.on_update(before, after, facts).errors)) == errors


UNCHANGED = [
    annotated("nonsense"),
    ENABLED,
    OPTED_OUT,
    named("Not a name"),
    named("team"),
    {**ENABLED, **named("team")},
    {**named("team"), **TAKEN},
]
"""V23 and V26: unchanged annotations, and names of claims, are not validated again."""


@pytest.mark.parametrize("both", UNCHANGED)
def test_v23_v26_unchanged_annotation_is_not_validated(both):
    before = changed(workload(), both)
    for facts in (ON, OFF, NO_EXPLICIT):
        assert validation.on_update(before, changed(before, {"spec.replicas": 3}), facts).allowed


def test_v25_cliques_are_matched_by_name():
    router, worker = clique("router"), {**clique("worker"), "annotations": {NAME: "team"}}
    before = validation.default_set(bare(router, worker))
    after = validation.default_set(bare(worker, router))
    assert validation.on_update(before, after, ON).allowed
    swapped = validation.default_set(bare(clique("worker"), {**router, "annotations": {NAME: "team"}}))
    assert [str(error).partition(":")[0] for error in validation.on_update(before, swapped, ON).errors] == [
        f"spec.template.cliques[0].annotations.{NAME}",
        f"spec.template.cliques[1].annotations.{NAME}",
    ]


def test_v7_added_reserved_claim_is_refused_in_containers():
    before = changed(workload(), {**named("team"), **TAKEN})
    (error,) = validation.on_update(before, changed(before, USED), ON).errors
    assert str(error) == f"{C}.spec.podSpec.containers[0].resources.claims[0].name: {RESERVED}"
    assert validation.on_update(workload(), changed(workload(), {**TAKEN, **USED}), ON).allowed


@pytest.mark.parametrize("facts", [ON, OFF], ids=["automatic", "switched off later"])
def test_pods_that_leave_their_domain_are_warned_of(facts):
    """GPUs by a claim instead: admission looks up claims only when a set is created."""
    before = changed(workload(), {**GPUS, **ENABLED})
    claimed = changed(workload(), {**ENABLED, **TAKEN, f"{C}.spec.podSpec.resourceClaims[0].name": "gpu"})
    (warning,) = validation.on_update(before, claimed, facts).warnings
    assert warning.startswith(f"{C}: its pods will leave their ComputeDomain: no container requests")
    kept = changed(before, {f"{C}.spec.podSpec.containers[0].image": "other"})
    assert validation.on_update(before, kept, facts).warnings == ()


def test_gpus_added_to_a_set_without_domains_are_warned_of():
    plain, with_gpus = workload(), changed(workload(), GPUS)
    (warning,) = validation.on_update(plain, with_gpus, ON).warnings
    assert warning.startswith(f"{C}: its pods will be in no ComputeDomain: the set was created without")
    assert warning.endswith("recreate the set to get domains")
    for before, after, facts in (
        (plain, with_gpus, OFF),
        (with_gpus, changed(with_gpus, {"spec.replicas": 2}), ON),
        (changed(plain, OPTED_OUT), changed(with_gpus, OPTED_OUT), ON),
        (changed(plain, ENABLED), changed(with_gpus, ENABLED), ON),
        (changed(plain, named("team")), changed(with_gpus, named("team")), ON),
        (changed(plain, GROUPED), changed(with_gpus, GROUPED), ON),
    ):
        assert validation.on_update(before, after, facts).warnings == ()
