"""A new set: what passes, what is warned of, and that all errors come together."""

from __future__ import annotations

import msgspec
import pytest

from grove.rules import validate
from tests.rules.builders import FACTS, GONE, bare, changed, clique, group, workload
from tests.rules.words import CLAIMS, EXPLICIT, KAI, LPX, QUEUE, VOLCANO, C, G, T, scaling, sharing

ACCEPTED = [
    {},
    {"metadata.name": GONE, "metadata.generateName": "app-"},
    {"spec.replicas": 0},
    {"metadata.labels": {"example.com/a_b.c": "", "x": "a" * 63}},
    {"metadata.annotations": {"Example.com/A": "anything at all: {}"}},
    {f"{C}.name": "r" * 42},
    {f"{C}.spec.minAvailable": 1},
    {f"{C}.spec.autoScalingConfig": scaling()},
    {f"{C}.spec.podSpec.containers[0].env": [{"name": "A"}, {"name": "with:colon"}, {"name": "1"}]},
    {f"{C}.spec.startsAfter": ["router", "nobody", "nobody"]},
    {
        **EXPLICIT,
        f"{C}.spec.startsAfter": ["prefill", "decode"],
        f"{T}.cliques[2].spec.startsAfter": ["prefill"],
    },
    {**KAI, "metadata.labels": {QUEUE: "a"}, f"{C}.annotations": {QUEUE: "a"}},
    {**KAI, f"{T}.cliques[2].annotations": {QUEUE: "a"}},
    VOLCANO,
    {**VOLCANO, "metadata.annotations": {"scheduling.grove.io/volcano-queue": "team"}},
    LPX,
    {f"{G}.scaleConfig": scaling()},
    {f"{T}.podCliqueScalingGroups": GONE},
    {f"{T}.resourceClaimTemplates": CLAIMS, f"{T}.resourceSharing": sharing()},
    {f"{T}.resourceSharing": sharing(namespace="other", filter={"childScalingGroupNames": ["engine"]})},
    {f"{T}.terminationDelay": "1h30m"},
    {f"{T}.cliqueStartupType": None},
    {"spec.ofALaterVersion": {"x": [None]}, f"{C}.spec.podSpec.ofALaterVersion": [1]},
    {"status": "none of our business"},
    {"metadata.labels": None, f"{C}.annotations": None, f"{C}.spec.podSpec.initContainers": None},
]


@pytest.mark.parametrize("changes", ACCEPTED, ids=lambda value: next(iter(value), "")[:60])
def test_accepted(changes):
    verdict = validate.on_create(changed(workload(), changes), FACTS)
    assert verdict.message == ""
    assert verdict.allowed
    assert not (verdict.warnings and EXPLICIT.items() <= changes.items())


def test_everything_that_is_wrong_is_said_at_once():
    body = bare(clique("A", 0), podCliqueScalingGroups=[group("G", "x", replicas=0)])
    body["spec"]["replicas"] = -1
    verdict = validate.on_create(body, FACTS)
    assert [error.path for error in verdict.errors] == [
        "spec.replicas",
        f"{C}.name",
        f"{C}.spec.replicas",
        f"{C}.spec.minAvailable",
        f"{G}.name",
        f"{G}.cliqueNames",
        f"{G}.replicas",
        f"{G}.minAvailable",
        f"{T}.terminationDelay",
    ]
    assert verdict.message.startswith("[spec.replicas: Invalid value: -1: must be non-negative, ")
    assert verdict.message.endswith("spec.template.terminationDelay: Required value]")


@pytest.mark.parametrize(
    ("queues", "wrong"),
    [
        (None, []),
        ({"team": "Open", "default": "Closed"}, []),
        ({"team": "Closing"}, ['Volcano queue "team" is Closing: it must be Open']),
        ({"default": "Open"}, ['Volcano queue "team" not found']),
    ],
)
def test_a_queue_of_volcano_must_be_open(queues, wrong):
    facts = msgspec.structs.replace(FACTS, volcano_queues=queues)
    annotated = {"metadata.annotations": {"scheduling.grove.io/volcano-queue": "team"}}
    verdict = validate.on_create(changed(workload(), {**VOLCANO, **annotated}), facts)
    assert list(map(str, verdict.errors)) == [f'spec: Invalid value: "volcano": {each}' for each in wrong]


def test_volcano_has_a_queue_by_default():
    facts = msgspec.structs.replace(FACTS, volcano_queues={})
    verdict = validate.on_create(changed(workload(), VOLCANO), facts)
    assert verdict.message == 'spec: Invalid value: "volcano": Volcano queue "default" not found'


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {f"{C}.spec.podSpec.restartPolicy": "Never"},
            f"{C}.spec.podSpec.restartPolicy is Never: a pod that ends is not started again but replaced",
        ),
        (
            {f"{T}.cliques[1].rollingUpdate": {"maxUnavailable": 1}},
            f"{T}.cliques[1].rollingUpdate is ignored: the clique is updated with its scaling group",
        ),
        (
            {f"{C}.spec.startsAfter": ["decode"]},
            f"{T}.cliques: startsAfter is ignored with cliqueStartupType CliqueStartupTypeAnyOrder; it needs "
            "CliqueStartupTypeExplicit",
        ),
        (
            {f"{G}.replicas": 5, f"{G}.scaleConfig": scaling()},
            f"{G}.scaleConfig.maxReplicas is below replicas: the autoscaler scales the group from 5 "
            "to 4 at once",
        ),
    ],
)
def test_what_is_legal_and_hardly_meant_is_warned_of(changes, warning):
    assert validate.on_create(workload(), FACTS).warnings == ()
    assert validate.on_create(changed(workload(), changes), FACTS).warnings == (warning,)
