"""Creation of a set: accepted sets, warnings, scheduler lookups, and several errors at once."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.configuration.types import OnUnsupported, Scheduler, SchedulerProfile
from grove.rules.podcliqueset import validation
from grove.schedulers.registry import backends
from grove.schedulers.volcano import Volcano
from tests.rules.builders import FACTS, GONE, bare, changed, clique, group, in_use, workload
from tests.rules.messages import (
    CLAIMS,
    CONSTRAINED,
    EXPLICIT,
    KAI,
    LPX,
    ON_KAI,
    QUEUE,
    VOLCANO,
    C,
    G,
    T,
    scaling,
    sharing,
)

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
    {f"{C}.spec.startsAfter": ["router", "missing", "missing"]},
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
    {"status": "ignored by admission"},
    {"metadata.labels": None, f"{C}.annotations": None, f"{C}.spec.podSpec.initContainers": None},
]


@pytest.mark.parametrize("changes", ACCEPTED, ids=lambda value: next(iter(value), "")[:60])
def test_valid_set_is_accepted(changes):
    verdict = validation.on_create(changed(workload(), changes), FACTS)
    assert verdict.message == ""
    assert verdict.allowed
    assert not (verdict.warnings and EXPLICIT.items() <= changes.items())


def test_all_errors_are_reported_at_once():
    body = bare(clique("A", 0), podCliqueScalingGroups=[group("G", "x", replicas=0)])
    body["spec"]["replicas"] = -1
    verdict = validation.on_create(body, FACTS)
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


QUEUED = changed(
    workload(), {**VOLCANO, "metadata.annotations": {"scheduling.grove.io/volcano-queue": "team"}}
)


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"status": {"state": "Open"}}, ""),
        ({"status": {"state": "Closing"}}, 'Volcano queue "team" is Closing: it must be Open'),
        ({}, 'Volcano queue "team" is not open yet: it must be Open'),
        (None, 'Volcano queue "team" not found'),
    ],
)
def test_volcano_queue_must_be_open(found, wrong):
    (lookup,) = validation.lookups(QUEUED, FACTS)
    assert (lookup.kind.plural, lookup.name) == ("queues", "team")
    facts = msgspec.structs.replace(FACTS, found={lookup: found})
    verdict = validation.on_create(QUEUED, facts)
    assert verdict.message == (f'spec: Invalid value: "volcano": {wrong}' if wrong else "")
    assert validation.on_create(QUEUED, FACTS).allowed, "without a lookup the queue is not checked"
    assert validation.on_update(QUEUED, changed(QUEUED, {"spec.replicas": 2}), facts).allowed


def test_volcano_set_without_queue_uses_the_default_queue():
    body = changed(workload(), VOLCANO)
    (lookup,) = validation.lookups(body, FACTS)
    assert lookup.name == "default"
    verdict = validation.on_create(body, msgspec.structs.replace(FACTS, found={lookup: None}))
    assert verdict.message == 'spec: Invalid value: "volcano": Volcano queue "default" not found'


@pytest.mark.parametrize("body", [workload(), changed(workload(), ON_KAI), {"spec": 1}, {}])
def test_other_schedulers_need_no_lookups(body):
    assert validation.lookups(body, FACTS) == ()


def test_unsupported_constraints_warn_if_the_profile_says_so():
    facts = msgspec.structs.replace(
        FACTS, backends=in_use("default-scheduler", "volcano", unsupported_constraints=OnUnsupported.WARN)
    )
    for scheduler in ({}, VOLCANO):
        body = changed(workload(), {**scheduler, **CONSTRAINED})
        verdict = validation.on_create(body, facts)
        assert verdict.allowed
        (warning,) = verdict.warnings
        assert "PodCliqueSet" in warning
        assert not validation.on_create(body, FACTS).allowed
        assert validation.on_update(body, changed(body, {"spec.replicas": 2}), FACTS).allowed


def test_required_constraints_are_accepted_with_placement():
    placing = in_use("default-scheduler", config={"placement": "All"})
    body = changed(workload(), CONSTRAINED)
    verdict = validation.on_create(body, msgspec.structs.replace(FACTS, backends=placing))
    assert (verdict.allowed, verdict.warnings) == (True, ())


class FailingBackend(Volcano):
    """A third-party backend whose methods all raise."""

    name = "third-party"

    def unschedulable_reasons(self, scheduling_spec):
        raise KeyError("x")

    unsupported_constraints = lookups = unschedulable_reasons


def test_failing_backend_affects_only_its_own_sets():
    others = {"third-party": lambda _: FailingBackend()}
    scheduler = Scheduler((SchedulerProfile("third-party"),))
    facts = msgspec.structs.replace(FACTS, backends=backends(scheduler, others))
    body = changed(workload(), {**dict.fromkeys(KAI, "third-party"), **CONSTRAINED})
    assert validation.lookups(body, facts) == ()
    assert "scheduler backend third-party failed: KeyError: 'x'" in validation.on_create(body, facts).message
    assert validation.on_create(workload(), facts).allowed


NO_ORDER = (
    "start orders are disabled on this operator: use cliqueStartupType CliqueStartupTypeAnyOrder, "
    "or set startOrder.enabled in its configuration"
)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {f"{T}.cliqueStartupType": "CliqueStartupTypeInOrder"},
            f'{T}.cliqueStartupType: Invalid value: "CliqueStartupTypeInOrder": {NO_ORDER}',
        ),
        (
            {**EXPLICIT, f"{T}.cliques[1].spec.startsAfter": ["router"]},
            f'{T}.cliques[1].spec.startsAfter: Invalid value: ["router"]: {NO_ORDER}',
        ),
        (EXPLICIT, ""),
        ({f"{C}.spec.startsAfter": ["decode"]}, ""),
        ({}, ""),
    ],
)
def test_start_order_is_refused_where_disabled(changes, error):
    body, facts = changed(workload(), changes), msgspec.structs.replace(FACTS, start_order=False)
    assert validation.on_create(body, facts).message == error
    assert validation.on_create(body, FACTS).allowed
    scaled = changed(body, {"spec.replicas": 7})
    assert validation.on_update(body, scaled, facts).allowed, "a stored set can still be scaled"


IGNORED = "is ignored: with updateStrategy OnDelete pods are replaced when they are deleted"


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {f"{C}.spec.podSpec.restartPolicy": "Never"},
            f"{C}.spec.podSpec.restartPolicy is Never: a pod that terminates is replaced; use Always to "
            "restart its containers",
        ),
        (
            {f"{T}.cliques[1].rollingUpdate": {"maxUnavailable": 1}},
            f"{T}.cliques[1].rollingUpdate is ignored: set it on the scaling group, which updates the clique",
        ),
        (
            {f"{C}.rollingUpdate": {"maxUnavailable": 2}, "spec.updateStrategy": {"type": "OnDelete"}},
            f"{C}.rollingUpdate {IGNORED}",
        ),
        (
            {f"{G}.rollingUpdate": {"maxUnavailable": 2}, "spec.updateStrategy": {"type": "OnDelete"}},
            f"{G}.rollingUpdate {IGNORED}",
        ),
        (
            {f"{C}.spec.startsAfter": ["decode"]},
            f"{T}.cliques: startsAfter is ignored with cliqueStartupType CliqueStartupTypeAnyOrder: use "
            "CliqueStartupTypeExplicit",
        ),
        (
            {f"{G}.replicas": 5, f"{G}.scaleConfig": scaling()},
            f"{G}.scaleConfig.maxReplicas is below replicas: the autoscaler scales in the group from 5 to 4; "
            "raise maxReplicas or lower replicas",
        ),
    ],
)
def test_unlikely_setting_is_warned_of(changes, warning):
    assert validation.on_create(workload(), FACTS).warnings == ()
    assert validation.on_create(changed(workload(), changes), FACTS).warnings == (warning,)
