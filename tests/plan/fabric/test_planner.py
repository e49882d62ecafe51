"""Planning of one fabric domain: created, shared, repaired, held, deleted (CD, L, X)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Create, Delete, Patch
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.domain_pods import DomainPods, HeldNode
from grove.fabrics.membership import membership_in
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainReport
from grove.plan.fabric import planner
from grove.plan.fabric.model import ChannelHolder, DomainConsumer, DomainSnapshot
from grove.plan.fabric.resolution import ObservedDomain, resolve
from tests.fabrics.builders import BOTH, a_set, clique

NVIDIA = BOTH.of("nvidia")
FINALIZER = "grove.io/computedomain-finalizer"
DRIVER = "resource.nvidia.com/computeDomain"
AUTO = a_set(clique("worker"), auto="enabled")
TEAM = clique("worker", computedomain="team")
ONE, TWO = a_set(TEAM, name="one"), a_set(TEAM, name="two")


def consumer(workload: PodCliqueSet, name: str, observed: ObservedDomain) -> DomainConsumer:
    membership = membership_in(workload, BOTH, "nvidia", name, lambda *_: 1)
    assert membership is not None
    return DomainConsumer(workload, membership, resolve(workload, NVIDIA, name, membership, observed).state)


def domain_snapshot(name, *workloads, found=None, template=None, templates_listed=False, **more):
    observed = ObservedDomain(found=found, template=template, templates_listed=templates_listed)
    consumers = tuple(consumer(workload, name, observed) for workload in workloads)
    return DomainSnapshot(NVIDIA, "ns", name, found, consumers, **more)


def plan_domain(snapshot, now=0.0):
    return planner.plan_domain(snapshot, now)


def managed_domain(name, *workloads) -> Domain:
    """The domain that the operator creates for these sets, as the cluster has it."""
    (create,) = plan_domain(domain_snapshot(name, *workloads)).intents
    body = {**create.body, "metadata": {**create.body["metadata"], "uid": "d1", "resourceVersion": "7"}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Domain)


def with_meta(domain, **metadata):
    return replace(domain, metadata=replace(domain.metadata, **metadata))


def terminating(domain):
    return with_meta(domain, deletion_timestamp="2026-01-01T00:00:00Z")


def events_of(plan):
    return [(event.regarding.name, event.reason) for event in plan.events if not event.on_failure]


def test_cd_auto_domain_has_one_controller_and_guide_labels():
    plan = plan_domain(domain_snapshot("inference-1", AUTO))
    (create,) = plan.intents
    assert isinstance(create, Create)
    assert create.body["metadata"] == {
        "name": "inference-1",
        "namespace": "ns",
        "labels": {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "inference",
            "app.kubernetes.io/name": "inference-1",
            "app.kubernetes.io/component": "pcs-computedomain",
            "grove.io/podcliqueset-replica-index": "1",
            "grove.io/computedomain-mode": "auto",
        },
        "finalizers": [FINALIZER],
        "ownerReferences": [
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodCliqueSet",
                "name": "inference",
                "uid": "uid-inference",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    (event,) = [event for event in plan.events if not event.on_failure]
    assert (event.reason, event.note) == ("ComputeDomainCreated", "ComputeDomain inference-1 created")


def test_x6_explicit_domain_has_plain_owners_and_no_controller():
    (create,) = plan_domain(domain_snapshot("team", TWO, ONE)).intents
    owners = create.body["metadata"]["ownerReferences"]
    assert [(owner["name"], "controller" in owner) for owner in owners] == [("one", False), ("two", False)]
    object_labels = create.body["metadata"]["labels"]
    assert object_labels["app.kubernetes.io/part-of"] == "one"
    assert object_labels["grove.io/computedomain-mode"] == "explicit"
    assert "grove.io/podcliqueset-replica-index" not in object_labels


def test_domain_labels_name_the_group():
    workload = a_set(clique("worker"), group="fast")
    object_labels = managed_domain("inference-0-fast", workload).metadata.labels
    assert object_labels["grove.io/mnnvl-group"] == "fast"
    assert object_labels["grove.io/podcliqueset-replica-index"] == "0"


def test_correct_domain_unchanged_and_unneeded_not_created():
    assert (
        plan_domain(domain_snapshot("inference-0", AUTO, found=managed_domain("inference-0", AUTO))).intents
        == ()
    )
    assert (
        plan_domain(domain_snapshot("team", ONE, TWO, found=managed_domain("team", ONE, TWO))).intents == ()
    )
    assert plan_domain(domain_snapshot("team")).intents == ()


def test_l3_removed_labels_and_finalizers_are_restored():
    bare = with_meta(
        managed_domain("inference-0", AUTO),
        finalizers=(DRIVER,),
        labels={
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/component": "pcs-computedomain",
            "theirs": "too",
        },
    )
    (patch,) = plan_domain(domain_snapshot("inference-0", AUTO, found=bare)).intents
    assert isinstance(patch, Patch)
    metadata = patch.body["metadata"]
    assert metadata["resourceVersion"] == "7"
    assert metadata["finalizers"] == [DRIVER, FINALIZER]
    assert metadata["labels"]["app.kubernetes.io/part-of"] == "inference"
    assert "theirs" not in metadata["labels"]
    assert "spec" not in patch.body  # CD2


def test_x6_owners_follow_the_sets_that_name_the_domain():
    confirm, join = plan_domain(domain_snapshot("team", ONE, TWO, found=managed_domain("team", ONE))).intents
    assert confirm.target.name == "two"
    assert [owner["name"] for owner in join.body["metadata"]["ownerReferences"]] == ["one", "two"]
    assert join.after == (confirm.id,)
    (part,) = plan_domain(
        domain_snapshot("team", TWO, found=managed_domain("team", ONE, TWO), former_owners=(ONE,))
    ).intents
    assert [owner["name"] for owner in part.body["metadata"]["ownerReferences"]] == ["two"]
    assert part.body["metadata"]["labels"] == {"app.kubernetes.io/part-of": "two"}  # X8


def test_set_that_joins_a_domain_gets_an_event():
    plan = plan_domain(domain_snapshot("team", ONE, TWO, found=managed_domain("team", ONE)))
    (event,) = plan.events
    assert (event.regarding.name, event.reason, event.warning) == ("two", "ComputeDomainJoined", False)
    assert (event.note, event.intent) == (
        "joined ComputeDomain team, which is used by one",
        plan.intents[-1].id,
    )
    adopted = with_meta(managed_domain("inference-0", AUTO), owner_references=())
    assert events_of(plan_domain(domain_snapshot("inference-0", AUTO, found=adopted))) == []


def test_l5_pods_gone_then_finalizer_removed_then_deleted():
    found = with_meta(managed_domain("inference-1", AUTO), finalizers=(FINALIZER, DRIVER))
    assert (
        plan_domain(domain_snapshot("inference-1", found=found, former_owners=(AUTO,), in_use=True)).intents
        == ()
    )
    plan = plan_domain(domain_snapshot("inference-1", found=found, former_owners=(AUTO,)))
    confirm, release, delete = plan.intents
    assert confirm.target.kind == "PodCliqueSet"
    assert release.body["metadata"] == {"resourceVersion": "7", "finalizers": [DRIVER]}
    assert release.after == (confirm.id,)
    assert isinstance(delete, Delete)
    assert (delete.uid, delete.after) == ("d1", (release.id,))
    assert events_of(plan) == [("inference", "ComputeDomainDeleted")]


def test_l6_domain_of_deleted_set_needs_no_confirmation():
    release, delete = plan_domain(
        domain_snapshot("inference-0", found=managed_domain("inference-0", AUTO))
    ).intents
    assert isinstance(release, Patch)
    assert isinstance(delete, Delete)


def test_domain_of_unknown_owner_set_is_kept():
    found = managed_domain("inference-0", AUTO)
    assert plan_domain(domain_snapshot("inference-0", found=found, unknown_owner=True)).intents == ()
    (release,) = plan_domain(
        domain_snapshot("inference-0", found=terminating(found), unknown_owner=True)
    ).intents
    assert release.body["metadata"]["finalizers"] == []


def test_l8_domain_deleted_by_user_is_held_and_reported():
    found = terminating(managed_domain("inference-0", AUTO))
    plan = plan_domain(domain_snapshot("inference-0", AUTO, found=found))
    assert plan.intents == ()
    assert events_of(plan) == [("inference", "ComputeDomainTerminating")]
    assert plan.events[0].warning


def test_l9_domain_of_scaled_in_replica_released_after_pods():
    found = terminating(managed_domain("inference-0", AUTO))
    assert plan_domain(domain_snapshot("inference-0", found=found, in_use=True)).intents == ()
    (release,) = plan_domain(domain_snapshot("inference-0", found=found)).intents
    assert release.body["metadata"]["finalizers"] == []
    free = with_meta(found, finalizers=(DRIVER,))
    assert plan_domain(domain_snapshot("inference-0", found=free)).intents == ()


def test_l10_recreated_set_waits_for_old_domain_to_be_gone():
    again = a_set(clique("worker"), auto="enabled")
    again = replace(again, metadata=replace(again.metadata, uid="another"))
    found = terminating(managed_domain("inference-0", AUTO))
    (release,) = plan_domain(domain_snapshot("inference-0", again, found=found, unknown_owner=True)).intents
    assert release.body["metadata"]["finalizers"] == []


def test_l11_domain_recreated_under_running_pods_warns():
    plan = plan_domain(domain_snapshot("inference-0", AUTO, in_use=True))
    assert [event.warning for event in plan.events if not event.on_failure] == [False, True]


def test_orphaned_domain_is_adopted():
    found = with_meta(managed_domain("inference-0", AUTO), owner_references=())
    confirm, adopt = plan_domain(domain_snapshot("inference-0", AUTO, found=found)).intents
    assert confirm.target.name == "inference"
    (owner,) = adopt.body["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("uid-inference", True)


def foreign(name):
    body = {"metadata": {"name": name, "namespace": "ns", "uid": "f"}, "spec": {}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Domain)


def test_cd5_foreign_domain_blocks_auto_and_is_not_written():
    plan = plan_domain(domain_snapshot("inference-0", AUTO, found=foreign("inference-0")))
    assert plan.intents == ()
    assert events_of(plan) == [("inference", "ComputeDomainConflict")]


def template(uid="", **more):
    return ObjectMeta(name="inference-0", namespace="ns", labels={DRIVER: uid} if uid else {}, **more)


@pytest.mark.parametrize(
    ("seen", "events"),
    [
        (None, []),
        (template("d1"), []),
        (template(owner_references=(OwnerReference("v1", "ComputeDomain", "inference-0", "d1"),)), []),
        (template(), [("inference", "ComputeDomainConflict")]),
        (template("d0"), [("inference", "ComputeDomainConflict")]),
        (template("d0", deletion_timestamp="2026-01-01T00:00:00Z"), []),
    ],
)
def test_cd6_foreign_template_is_reported_and_not_written(seen, events):
    plan = plan_domain(
        domain_snapshot("inference-0", AUTO, found=managed_domain("inference-0", AUTO), template=seen)
    )
    assert plan.intents == ()
    assert events_of(plan) == events
    for event in plan.events:
        assert event.note.startswith("ResourceClaimTemplate inference-0, by which pods join ComputeDomain")


def test_foreign_domain_is_referenced_and_not_written():
    plan = plan_domain(domain_snapshot("team", ONE, found=foreign("team")))
    assert plan.intents == ()
    assert events_of(plan) == [("one", "ComputeDomainReferenced")]
    assert plan_domain(domain_snapshot("team", found=foreign("team"))).intents == ()


def test_domain_of_one_set_is_not_shared_with_another():
    intruder = a_set(clique("worker", computedomain="inference-0"), name="intruder")
    found = managed_domain("inference-0", AUTO)
    plan = plan_domain(domain_snapshot("inference-0", intruder, AUTO, found=found))
    assert plan.intents == ()
    assert events_of(plan) == [("intruder", "ComputeDomainConflict")]
    (create,) = plan_domain(domain_snapshot("inference-0", intruder, AUTO)).intents
    assert [owner["name"] for owner in create.body["metadata"]["ownerReferences"]] == ["inference"]


def test_b6_split_fabric_is_reported():
    found = managed_domain("inference-0", AUTO)
    nodes = [{"name": name, "cliqueID": name, "status": "Ready"} for name in ("a", "b")]
    plan = plan_domain(domain_snapshot("inference-0", AUTO, found=replace(found, status={"nodes": nodes})))
    assert events_of(plan) == [("inference", "FabricSplit")]
    assert "split over 2 partitions (a, b)" in plan.events[0].note
    assert (
        events_of(
            plan_domain(
                domain_snapshot("inference-0", AUTO, found=replace(found, status={"nodes": nodes[:1]}))
            )
        )
        == []
    )


def test_b2_allocation_mode_reaches_the_domain():
    key = "nvidia.com/computedomain-allocation-mode"
    explicit = a_set({**TEAM, "annotations": {**TEAM["annotations"], key: "All"}})
    assert managed_domain("team", explicit).spec["channel"]["allocationMode"] == "All"
    automatic = replace(
        AUTO, metadata=replace(AUTO.metadata, annotations={**AUTO.metadata.annotations, key: "All"})
    )
    assert managed_domain("inference-0", automatic).spec["channel"]["allocationMode"] == "All"
    assert "allocationMode" not in managed_domain("inference-0", AUTO).spec["channel"]
    default = a_set({**TEAM, "annotations": {**TEAM["annotations"], key: "Single"}})
    assert managed_domain("team", default).spec == managed_domain("team", a_set(TEAM)).spec


def test_b8_more_pods_than_channels_are_not_blamed_on_others():
    found = managed_domain("inference-0", AUTO)
    busy = domain_snapshot("inference-0", AUTO, found=found, unschedulable=(10.0,), holders=HOLDERS)
    assert events_of(plan_domain(busy, 70.0)) == [("inference", "ImexChannelBusy")]
    for channels, reasons in ((2, []), (3, [("inference", "ImexChannelBusy")])):
        assert events_of(plan_domain(replace(busy, channels=channels, members=3), 70.0)) == reasons


def reported(snapshot, now):
    """The reasons that the plan reports, and when it looks again."""
    plan = plan_domain(snapshot, now)
    return [reason for reason, _ in plan.report.problems], plan.requeue_at


def test_problem_of_a_domain_is_checked_when_it_is_due():
    created = with_meta(managed_domain("inference-0", AUTO), creation_timestamp="1970-01-01T00:00:10Z")
    snapshot = domain_snapshot("inference-0", AUTO, found=created, templates_listed=True)
    assert reported(snapshot, 11.0) == ([], 40.0)
    assert reported(snapshot, 40.0) == (["ClaimNotCreated"], 100.0)
    held = DomainPods(frozenset({"a"}), held=(HeldNode("a", 20.0),))
    snapshot = domain_snapshot("inference-0", AUTO, found=created, pods=held)
    assert reported(snapshot, 21.0) == ([], 30.0)
    assert reported(snapshot, 30.0) == (["NodeHeldByOtherDomain"], 90.0)


def test_report_changes_with_every_problem():
    """Sets and replicas look again if it does."""
    found = with_meta(managed_domain("inference-0", AUTO), creation_timestamp="1970-01-01T00:00:10Z")
    held = (HeldNode("a", 20.0), HeldNode("b", 50.0))
    pods = DomainPods(frozenset({"a", "b"}), former=("p",), held=held)
    snapshot = domain_snapshot("inference-0", AUTO, found=found, pods=pods)
    reports = [plan_domain(snapshot, now).report for now in (21.0, 30.0, 59.0, 60.0)]
    assert [[reason for reason, _ in each.problems] for each in reports] == [
        ["ComputeDomainRecreated"],
        ["ComputeDomainRecreated", "NodeHeldByOtherDomain"],
        ["ComputeDomainRecreated", "NodeHeldByOtherDomain"],
        ["ComputeDomainRecreated", "NodeHeldByOtherDomain"],
    ]
    assert reports[1] == reports[2] != reports[3]
    assert "cannot start on a, b:" in reports[3].problems[1][1]


HOLDERS = (
    ChannelHolder("ns", "other-0", ("other",), ("n1", "n2", "n3", "n4")),
    ChannelHolder("ns", "theirs", (), ("n5",)),
    ChannelHolder("private", "secret-0", ("secret",), ("n6",)),
    ChannelHolder("secret", "secret-0", (), ("n7", "n6")),
)
BUSY = (
    "2 pods of ComputeDomain inference-0 found no node for 60 s, and a node has one channel: ComputeDomain "
    "ns/other-0 of PodCliqueSet other holds n1, n2, n3 and 1 more; ComputeDomain ns/theirs holds n5; "
    "2 ComputeDomains of other namespaces hold 2 nodes"
)


@pytest.mark.parametrize(
    ("unschedulable", "holders", "now", "words", "requeue_at"),
    [
        ((10.0, 20.0), HOLDERS, 69.9, [], 70.0),
        ((10.0, 20.0), HOLDERS, 70.0, [BUSY], 130.0),
        ((10.0,), (), 20.0, [], 70.0),
        ((10.0,), (), 100.0, [], 160.0),
        ((), HOLDERS, 100.0, [], None),
    ],
)
def test_b4_channel_holders_are_reported_after_a_while(unschedulable, holders, now, words, requeue_at):
    found = managed_domain("inference-0", AUTO)
    plan = plan_domain(
        domain_snapshot("inference-0", AUTO, found=found, unschedulable=unschedulable, holders=holders), now
    )
    assert events_of(plan) == [("inference", "ImexChannelBusy")] * len(words)
    assert [event.note for event in plan.events] == words
    assert plan.report == DomainReport(busy="".join(words))
    assert plan.requeue_at == requeue_at
