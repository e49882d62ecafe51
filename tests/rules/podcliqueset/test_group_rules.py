"""One row for each rule about schedulers, scaling groups and shared claims: a change that breaks it, and the
exact errors."""

from __future__ import annotations

import pytest

from grove.rules import syntax
from grove.rules.podcliqueset import validation
from tests.rules.builders import FACTS, changed, group, workload
from tests.rules.messages import (
    CLAIMS,
    CONSTRAINED,
    KAI,
    LPX,
    QUEUE,
    REQUEST,
    SUBDOMAIN,
    VOLCANO,
    C,
    G,
    T,
    scaling,
    sharing,
    together,
)

SCHEDULERS = [
    (
        {f"{C}.spec.podSpec.schedulerName": "volcano"},
        [
            f'{T}.cliques.spec.podSpec.schedulerName: Invalid value: ["volcano","default-scheduler"]: the '
            "schedulerName for all pods have to be the same"
        ],
    ),
    (
        dict.fromkeys(KAI, "slurm"),
        [
            f'{T}.cliques.spec.podSpec.schedulerName: Invalid value: "slurm": schedulerName must be an '
            "enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration. Enabled: "
            "default-scheduler, kai-scheduler, volcano, lpx-scheduler"
        ],
    ),
    (
        KAI,
        [
            'spec: Invalid value: "kai-scheduler": the KAI scheduler needs a queue: label the PodCliqueSet, '
            "or its cliques, with kai.scheduler/queue"
        ],
    ),
    (
        {**KAI, "metadata.labels": {QUEUE: "a"}, f"{C}.annotations": {QUEUE: "b"}},
        [
            'spec: Invalid value: "kai-scheduler": kai.scheduler/queue is a on the PodCliqueSet but b on its '
            "cliques: they must be the same"
        ],
    ),
    (
        {**KAI, f"{T}.cliques[1].labels": {QUEUE: "a"}, f"{C}.labels": {QUEUE: "b"}},
        [
            'spec: Invalid value: "kai-scheduler": the cliques name different queues in kai.scheduler/queue: '
            "b, a"
        ],
    ),
    (
        {
            **VOLCANO,
            f"{C}.annotations": {"scheduling.grove.io/volcano-queue": "a"},
            f"{T}.cliques[1].annotations": {"scheduling.grove.io/volcano-queue": "b"},
        },
        [
            'spec: Invalid value: "volcano": the cliques name different queues in '
            "scheduling.grove.io/volcano-queue: a, b"
        ],
    ),
    (
        {**VOLCANO, **CONSTRAINED},
        [
            'spec: Invalid value: "volcano": volcano scheduler backend does not support topologyConstraint '
            "on the PodCliqueSet: remove it"
        ],
    ),
    (
        {**LPX, **CONSTRAINED},
        [
            'spec: Invalid value: "lpx-scheduler": topologyConstraint on the PodCliqueSet is not supported: '
            "placement must be expressed through the LPX workload contract"
        ],
    ),
    (
        CONSTRAINED,
        [
            'spec: Invalid value: "default-scheduler": default-scheduler cannot keep required topology '
            "constraints (the PodCliqueSet): set placement or gangScheduling in its profile, use "
            "pack.preferred, or another scheduler"
        ],
    ),
    (
        {**VOLCANO, "metadata.annotations": {"scheduling.grove.io/volcano-queue": "No"}},
        [
            'spec: Invalid value: "volcano": annotation scheduling.grove.io/volcano-queue: ' + SUBDOMAIN,
        ],
    ),
]

IN_SET = "use names of spec.template.cliques"
GROUPS = [
    ({f"{G}.name": "Engine"}, [f'{G}.name: Invalid value: "Engine": {SUBDOMAIN}']),
    ({f"{G}.name": ""}, [f"{G}.name: Required value"]),
    ({f"{G}.cliqueNames": []}, [f"{G}.cliqueNames: Required value: at least one PodClique must be named"]),
    (
        {f"{G}.cliqueNames": ["prefill", "x", "decode", "b"]},
        [f'{G}.cliqueNames: Invalid value: ["b","x"]: unidentified PodClique names found: {IN_SET}'],
    ),
    (
        {f"{G}.name": "e" * 36},
        [
            f'{G}.cliqueNames[0].name: Invalid value: "prefill": {together(46)}',
            f'{G}.name: Invalid value: "{"e" * 36}": {together(46)}',
            f'metadata.name: Invalid value: "app": {together(46)}',
        ],
    ),
    (
        {f"{G}.replicas": 0},
        [
            f"{G}.replicas: Invalid value: 0: must be greater than 0",
            f"{G}.minAvailable: Invalid value: 1: minAvailable must not be greater than replicas",
        ],
    ),
    ({f"{G}.minAvailable": 0}, [f"{G}.minAvailable: Invalid value: 0: must be greater than 0"]),
    (
        {f"{G}.minAvailable": 3},
        [f"{G}.minAvailable: Invalid value: 3: minAvailable must not be greater than replicas"],
    ),
    (
        {f"{G}.minAvailable": 2, f"{G}.scaleConfig": scaling(fewest=1)},
        [
            f"{G}.scaleConfig.minReplicas: Invalid value: 1: must be 0, or greater than or equal to "
            "minAvailable"
        ],
    ),
    (
        {f"{G}.scaleConfig": scaling(fewest=3, most=2)},
        [f"{G}.scaleConfig.maxReplicas: Invalid value: 2: must be greater than or equal to minReplicas"],
    ),
    (
        {f"{G}.rollingUpdate": {"maxUnavailable": -1}},
        [f"{G}.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than 0"],
    ),
    (
        {f"{T}.podCliqueScalingGroups[1]": group("engine", "router")},
        [f'{T}.podCliqueScalingGroups.name: Duplicate value: "engine"'],
    ),
    (
        {f"{T}.podCliqueScalingGroups[1]": group("other", "router", "decode")},
        [f'{T}.podCliqueScalingGroups.cliqueNames: Duplicate value: "decode"'],
    ),
    (
        {f"{T}.cliques[1].spec.autoScalingConfig": scaling()},
        [
            f'{T}.podCliqueScalingGroups: Invalid value: ["prefill"]: autoScalingConfig is not allowed on a '
            "PodClique of a scaling group: use the group's scaleConfig"
        ],
    ),
]


def too_long(name: str) -> str:
    return (
        f'resourceSharing[0].name: Invalid value: "{name}": the names of its claims would have more than 63 '
        "characters, and pods could not refer to them: shorten it, or the names of set, scaling group and "
        "clique"
    )


SHARING = [
    (
        {f"{T}.resourceClaimTemplates": [{"name": "", "templateSpec": REQUEST}]},
        [f"{T}.resourceClaimTemplates[0].name: Required value"],
    ),
    (
        {f"{T}.resourceClaimTemplates": [{"name": "a", "templateSpec": {"spec": {}}}]},
        [
            f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests: Required value: at least one "
            "device request is required"
        ],
    ),
    (
        {f"{T}.resourceClaimTemplates": CLAIMS * 2},
        [f'{T}.resourceClaimTemplates.name: Duplicate value: "shared"'],
    ),
    ({f"{T}.resourceSharing": sharing(name="")}, [f"{T}.resourceSharing[0].name: Required value"]),
    (
        {f"{C}.resourceSharing": sharing() * 2},
        [f'{C}.resourceSharing[1].name: Duplicate value: "shared"'],
    ),
    (
        {f"{T}.resourceClaimTemplates": CLAIMS, f"{G}.resourceSharing": sharing(namespace="other")},
        [
            f'{G}.resourceSharing[0].namespace: Invalid value: "other": must be empty: shared is one of '
            "spec.template.resourceClaimTemplates"
        ],
    ),
    (
        {f"{T}.resourceSharing": sharing(scope="Some")},
        [
            f'{T}.resourceSharing[0].scope: Unsupported value: "Some": supported values: "AllReplicas", '
            '"PerReplica"'
        ],
    ),
    (
        {f"{T}.resourceSharing": sharing(filter={})},
        [
            f"{T}.resourceSharing[0].filter: Required value: must name at least one clique or scaling group; "
            "remove the filter to share with all"
        ],
    ),
    (
        {
            f"{T}.resourceSharing": sharing(
                filter={"childCliqueNames": ["router", "x"], "childScalingGroupNames": ["y"]}
            )
        },
        [
            f'{T}.resourceSharing[0].filter.childCliqueNames[1]: Not found: "x"',
            f'{T}.resourceSharing[0].filter.childScalingGroupNames[0]: Not found: "y"',
        ],
    ),
    (
        {f"{G}.resourceSharing": sharing(filter={"childCliqueNames": []})},
        [
            f"{G}.resourceSharing[0].filter: Required value: must name at least one clique of the group; "
            "remove the filter to share with all"
        ],
    ),
    (
        {f"{G}.resourceSharing": sharing(filter={"childCliqueNames": ["decode", "router"]})},
        [f'{G}.resourceSharing[0].filter.childCliqueNames[1]: Not found: "router"'],
    ),
    (
        {f"{T}.resourceSharing": sharing(name="team.gpu")},
        [
            f'{T}.resourceSharing[0].name: Invalid value: "team.gpu": must be valid in the names of claims '
            f"that pods refer to: {next(syntax.label('team.gpu'))}"
        ],
    ),
    # app-all-… has 63 characters with a template name of 55; app-0-engine-1-decode-all-… with one of 37.
    ({f"{T}.resourceSharing": sharing(name="t" * 56)}, [f"{T}.{too_long('t' * 56)}"]),
    ({f"{T}.cliques[2].resourceSharing": sharing(name="t" * 38)}, [f"{T}.cliques[2].{too_long('t' * 38)}"]),
    (
        {"spec.replicas": 11, f"{T}.resourceSharing": sharing(name="t" * 57, scope="PerReplica")},
        [f"{T}.{too_long('t' * 57)}"],
    ),
    (
        {f"{G}.resourceSharing": sharing(name="t" * 47, scope="PerReplica"), f"{G}.replicas": 101},
        [f"{G}.{too_long('t' * 47)}"],
    ),
]
FITS = [
    {f"{T}.resourceSharing": sharing(name="t" * 55)},
    {f"{T}.resourceSharing": sharing(name="t" * 57, scope="PerReplica")},
    {"spec.replicas": 10, f"{T}.resourceSharing": sharing(name="t" * 57, scope="PerReplica")},
    {f"{T}.cliques[2].resourceSharing": sharing(name="t" * 37)},
    {f"{G}.resourceSharing": sharing(name="t" * 47, scope="PerReplica"), f"{G}.replicas": 100},
]


@pytest.mark.parametrize("changes", FITS, ids=lambda value: next(iter(value))[:60])
def test_claim_names_of_maximum_length_are_accepted(changes):
    assert validation.on_create(changed(workload(), changes), FACTS).allowed


@pytest.mark.parametrize(
    ("changes", "errors"), SCHEDULERS + GROUPS + SHARING, ids=lambda value: next(iter(value), "")[:60]
)
def test_broken_rule_is_refused(changes, errors):
    verdict = validation.on_create(changed(workload(), changes), FACTS)
    assert list(map(str, verdict.errors)) == errors
    assert not verdict.allowed
