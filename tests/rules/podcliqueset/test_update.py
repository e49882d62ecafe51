"""Updates of a set: immutable fields, allowed changes, and errors that the stored set already has."""

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
NEW_SET = "create a new PodCliqueSet instead"
SWAPPED = {
    f"{T}.cliques[0]": workload()["spec"]["template"]["cliques"][1],
    f"{T}.cliques[1]": workload()["spec"]["template"]["cliques"][0],
}

REFUSED = [
    (
        {},
        {f"{T}.cliques[3]": default_set(bare(clique("more")))["spec"]["template"]["cliques"][0]},
        [
            f"{T}.cliques: Forbidden: PodCliques cannot be added or removed: there are 3, not 4; {NEW_SET}",
            f"{T}.cliques.name: Forbidden: PodCliques cannot be added or renamed: more is new; {NEW_SET}",
        ],
    ),
    (
        {},
        {f"{C}.name": "proxy"},
        [f"{T}.cliques.name: Forbidden: PodCliques cannot be added or renamed: proxy is new; {NEW_SET}"],
    ),
    (
        IN_ORDER,
        {**IN_ORDER, **SWAPPED},
        [
            f'{T}.cliques: Invalid value: ["prefill","router","decode"]: the order of PodCliques cannot be '
            "changed with CliqueStartupTypeInOrder: keep the order router, prefill, decode"
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
            f"not 2; {NEW_SET}",
            f"{T}.podCliqueScalingGroups.name: Forbidden: scaling groups cannot be added or renamed: more is "
            f"new; {NEW_SET}",
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
def test_immutable_field_change_is_refused(before, after, errors):
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
    ({}, {f"{T}.terminationDelay": "1m", f"{T}.priorityClassName": "system-node-critical"}),
    ({}, SWAPPED),
    ({f"{C}.resourceSharing": []}, {f"{C}.resourceSharing": GONE}),
    (  # A client that knows more fields writes the set back with an empty `metadata`.
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
def test_mutable_field_change_is_accepted(before, after):
    old = changed(workload(), before)
    new = changed(old, after)
    assert validation.on_update(old, new, FACTS).message == ""


def test_set_stored_without_defaults_can_be_updated():
    """Missing fields of the stored set count as their defaults."""
    old = bare(clique("a"), clique("b", roleName=""))
    assert validation.on_update(old, default_set(old, old), FACTS).message == ""


LEGACY = [
    {"metadata.name": "has.dots"},
    {f"{C}.spec.minAvailable": 9},
    {**EXPLICIT, f"{C}.spec.startsAfter": ["missing"]},
]


@pytest.mark.parametrize("wrong", LEGACY)
def test_errors_of_the_stored_set_do_not_refuse_an_update(wrong):
    old = changed(workload(), wrong)
    assert not validation.on_create(old, FACTS).allowed
    assert validation.on_update(old, changed(old, {"spec.replicas": 3}), FACTS).message == ""
    (error,) = validation.on_update(old, changed(old, {"spec.replicas": -3}), FACTS).errors
    assert error.path == "spec.replicas"


def test_set_with_disabled_scheduler_can_be_updated():
    old = changed(
        workload(), {f"{T}.cliques[{index}].spec.podSpec.schedulerName": "volcano" for index in range(3)}
    )
    assert not validation.on_create(old, Facts()).allowed
    assert validation.on_update(old, changed(old, {"spec.replicas": 0}), Facts()).message == ""


@pytest.mark.parametrize("old", [None, [], {}, {"spec": 1}])
def test_undecodable_stored_set_is_not_compared(old):
    assert validation.on_update(old, workload(), FACTS).allowed
    assert not validation.on_update(old, changed(workload(), {"spec.replicas": -1}), FACTS).allowed
