"""What cannot be changed, what can, and that old mistakes hold up nothing."""

from __future__ import annotations

import pytest

from grove.rules.model import Facts
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.rules.builders import FACTS, GONE, bare, changed, clique, group, workload
from tests.rules.messages import CLAIMS, EXPLICIT, C, G, T, scaling, sharing

GROUP = "grove.io/mnnvl-group"
IN_ORDER = {f"{T}.cliqueStartupType": "CliqueStartupTypeInOrder"}
IMMUTABLE = "field is immutable"
SWAPPED = {
    f"{T}.cliques[0]": workload()["spec"]["template"]["cliques"][1],
    f"{T}.cliques[1]": workload()["spec"]["template"]["cliques"][0],
}

REFUSED = [
    (
        {},
        {f"{T}.cliques[3]": default_set(bare(clique("more")))["spec"]["template"]["cliques"][0]},
        [
            f"{T}.cliques: Forbidden: PodCliques cannot be added or removed: there are 3, not 4",
            f"{T}.cliques.name: Forbidden: PodCliques cannot be added or renamed: more is not known",
        ],
    ),
    (
        {},
        {f"{C}.name": "proxy"},
        [f"{T}.cliques.name: Forbidden: PodCliques cannot be added or renamed: proxy is not known"],
    ),
    (
        IN_ORDER,
        {**IN_ORDER, **SWAPPED},
        [
            f'{T}.cliques: Invalid value: ["prefill","router","decode"]: the order of PodCliques cannot be '
            "changed with CliqueStartupTypeInOrder: it was router, prefill, decode"
        ],
    ),
    ({}, {f"{C}.spec.roleName": "x"}, [f'{T}.cliques.spec.roleName: Invalid value: "x": {IMMUTABLE}']),
    ({}, {f"{C}.spec.minAvailable": 1}, [f"{T}.cliques.spec.minAvailable: Invalid value: 1: {IMMUTABLE}"]),
    (
        {},
        {f"{C}.spec.startsAfter": ["decode"]},
        [f'{T}.cliques.spec.startsAfter: Invalid value: ["decode"]: {IMMUTABLE}'],
    ),
    (
        {},
        {f"{T}.cliques[{index}].spec.podSpec.schedulerName": "lpx-scheduler" for index in range(3)},
        [f'{T}.cliques.spec.podSpec.schedulerName: Invalid value: "lpx-scheduler": {IMMUTABLE}'] * 3,
    ),
    (
        {},
        {f"{T}.cliques[2].resourceSharing": sharing()},
        [
            f'{T}.cliques[2].resourceSharing: Invalid value: [{{"name":"shared","scope":"AllReplicas"}}]: '
            f"{IMMUTABLE}"
        ],
    ),
    (
        {},
        IN_ORDER,
        [f'{T}.cliqueStartupType: Invalid value: "CliqueStartupTypeInOrder": {IMMUTABLE}'],
    ),
    (
        {},
        {f"{T}.resourceClaimTemplates": CLAIMS},
        [f'{T}.resourceClaimTemplates: Invalid value: ["shared"]: {IMMUTABLE}'],
    ),
    (
        {f"{T}.resourceClaimTemplates": CLAIMS},
        {
            f"{T}.resourceClaimTemplates": CLAIMS,
            f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.config": [{}],
        },
        [f'{T}.resourceClaimTemplates: Invalid value: ["shared"]: {IMMUTABLE}'],
    ),
    (
        {f"{T}.resourceSharing": sharing()},
        {},
        [f"{T}.resourceSharing: Invalid value: []: {IMMUTABLE}"],
    ),
    (
        {},
        {f"{T}.podCliqueScalingGroups[1]": group("more", "router")},
        [
            f"{T}.podCliqueScalingGroups: Forbidden: scaling groups cannot be added or removed: there are 1, "
            "not 2",
            f"{T}.podCliqueScalingGroups.name: Forbidden: scaling groups cannot be added or renamed: more is "
            "not known",
        ],
    ),
    (
        {},
        {f"{G}.cliqueNames": ["decode"]},
        [f'{T}.podCliqueScalingGroups.cliqueNames: Invalid value: ["decode"]: {IMMUTABLE}'],
    ),
    (
        {},
        {f"{G}.minAvailable": 2},
        [f"{T}.podCliqueScalingGroups.minAvailable: Invalid value: 2: {IMMUTABLE}"],
    ),
    (
        {f"{G}.resourceSharing": sharing()},
        {f"{G}.resourceSharing": sharing(scope="PerReplica")},
        [
            f"{T}.podCliqueScalingGroups.resourceSharing: Invalid value: "
            f'[{{"name":"shared","scope":"PerReplica"}}]: {IMMUTABLE}'
        ],
    ),
    (
        {},
        {"metadata.annotations": {GROUP: "none"}},
        [f"metadata.annotations.{GROUP}: Forbidden: {GROUP} cannot be added after creation"],
    ),
    (
        {f"{C}.annotations": {GROUP: "none"}},
        {},
        [f"{C}.annotations.{GROUP}: Forbidden: {GROUP} cannot be removed after creation"],
    ),
    (
        {f"{G}.annotations": {GROUP: "a"}},
        {f"{G}.annotations": {GROUP: "b"}},
        [
            f'{G}.annotations.{GROUP}: Invalid value: "b": {GROUP} is immutable: it cannot be changed from '
            '"a" to "b"'
        ],
    ),
    ({}, {"spec.replicas": -2}, ["spec.replicas: Invalid value: -2: must be non-negative"]),
]


@pytest.mark.parametrize(
    ("before", "after", "errors"), REFUSED, ids=lambda value: str(next(iter(value), ""))[:60]
)
def test_refused(before, after, errors):
    verdict = validation.on_update(changed(workload(), before), changed(workload(), after), FACTS)
    assert list(map(str, verdict.errors)) == errors


ACCEPTED = [
    ({}, {}),
    ({}, {"spec.replicas": 5}),
    ({}, {"spec.updateStrategy": {"type": "OnDelete"}}),
    ({}, {f"{C}.spec.replicas": 7}),
    ({}, {f"{C}.spec.autoScalingConfig": scaling()}),
    ({}, {f"{C}.labels": {"a": "b"}, f"{C}.annotations": {"c": "d"}}),
    ({}, {f"{C}.spec.podSpec.containers[0].image": "app:2"}),
    ({}, {f"{C}.spec.podSpec.nodeName": "node-1", f"{C}.spec.podSpec.topologySpreadConstraints": [{}]}),
    ({}, {f"{G}.replicas": 9, f"{G}.scaleConfig": scaling()}),
    ({}, {f"{T}.terminationDelay": "1m", f"{T}.priorityClassName": "high"}),
    ({}, SWAPPED),
    ({f"{C}.resourceSharing": []}, {f"{C}.resourceSharing": GONE}),
    (  # What a program writes back that knows more fields than were written.
        {f"{T}.resourceClaimTemplates": CLAIMS},
        {
            f"{T}.resourceClaimTemplates": [
                {
                    "name": "shared",
                    "templateSpec": {"metadata": {}, **CLAIMS[0]["templateSpec"]},
                }
            ]
        },
    ),
    (
        {
            f"{T}.resourceClaimTemplates": [
                {"name": "a", "templateSpec": {"x": 1, **CLAIMS[0]["templateSpec"]}}
            ]
        },
        {
            f"{T}.resourceClaimTemplates": [
                {"name": "a", "templateSpec": {**CLAIMS[0]["templateSpec"], "x": 1}}
            ]
        },
    ),
]


@pytest.mark.parametrize(("before", "after"), ACCEPTED)
def test_accepted(before, after):
    old = changed(workload(), before)
    new = changed(old, after)
    assert validation.on_update(old, new, FACTS).message == ""


def test_a_set_from_before_the_webhooks_can_be_changed():
    """What was never filled in counts as what would have been."""
    old = bare(clique("a"), clique("b", roleName=""))
    assert validation.on_update(old, default_set(old, old), FACTS).message == ""


LEGACY = [
    {"metadata.name": "has.dots"},
    {f"{C}.spec.minAvailable": 9},
    {**EXPLICIT, f"{C}.spec.startsAfter": ["nobody"]},
]


@pytest.mark.parametrize("wrong", LEGACY)
def test_what_was_wrong_before_does_not_hold_up_a_change(wrong):
    old = changed(workload(), wrong)
    assert not validation.on_create(old, FACTS).allowed
    assert validation.on_update(old, changed(old, {"spec.replicas": 3}), FACTS).message == ""
    (error,) = validation.on_update(old, changed(old, {"spec.replicas": -3}), FACTS).errors
    assert error.path == "spec.replicas"


def test_a_scheduler_that_was_switched_off_since_does_not_hold_up_its_sets():
    old = changed(
        workload(), {f"{T}.cliques[{index}].spec.podSpec.schedulerName": "volcano" for index in range(3)}
    )
    assert not validation.on_create(old, Facts()).allowed
    assert validation.on_update(old, changed(old, {"spec.replicas": 0}), Facts()).message == ""


@pytest.mark.parametrize("old", [None, [], {}, {"spec": 1}])
def test_a_stored_set_that_cannot_be_read_leaves_the_new_one_to_stand_for_itself(old):
    assert validation.on_update(old, workload(), FACTS).allowed
    assert not validation.on_update(old, changed(workload(), {"spec.replicas": -1}), FACTS).allowed
