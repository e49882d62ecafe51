"""Updates of sets with fabric domains: immutable annotations (V20 to V26)."""

from __future__ import annotations

import pytest

from grove.rules.podcliqueset import validation
from tests.rules.builders import bare, changed, clique, workload
from tests.rules.fabric.domain_annotations import (
    AUTO,
    ENABLED,
    GPUS,
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
from tests.rules.messages import C

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
]
"""V20 to V22, V24."""


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
]
"""V23 and V26: unchanged annotations are not validated again."""


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
