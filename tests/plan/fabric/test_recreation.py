"""A domain that a user deleted and annotated is created again after its pods are gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.intents import Create, Delete, Patch
from grove.api.meta import ObjectMeta
from grove.api.types.pod import Pod
from grove.fabrics.resolved import DomainState
from grove.plan.fabric.recreation import is_to_be_recreated
from grove.plan.fabric.state import state_message
from tests.plan.fabric.test_planner import (
    AUTO,
    FINALIZER,
    NVIDIA,
    ONE,
    domain_snapshot,
    events_of,
    managed_domain,
    plan_domain,
    terminating,
    with_meta,
)

RECREATE = {"grove.io/recreate": "true"}
DELETED = terminating(managed_domain("inference-0", AUTO))
ANNOTATED = with_meta(DELETED, annotations=RECREATE)


def a_pod(name: str, *, deleted: bool = False) -> Pod:
    deleted_at = "2026-01-01T00:00:00Z" if deleted else None
    return Pod(ObjectMeta(name, "ns", f"uid-{name}", deletion_timestamp=deleted_at))


PODS = (a_pod("a"), a_pod("b", deleted=True), a_pod("c"))


def test_pods_are_deleted_after_the_domain_is_confirmed() -> None:
    plan = plan_domain(
        domain_snapshot(
            "inference-0", AUTO, found=ANNOTATED, in_use=True, restarted=PODS, former_owners=(ONE,)
        )
    )
    confirmed, *deletes = plan.intents
    assert isinstance(confirmed, Patch)
    assert confirmed.body == {"metadata": {"resourceVersion": "7"}}
    assert [(each.uid, each.after) for each in deletes if isinstance(each, Delete)] == [
        ("uid-a", (confirmed.id,)),
        ("uid-c", (confirmed.id,)),
    ]
    assert events_of(plan) == [("inference", "ComputeDomainRecreating")]
    assert not [event for event in plan.events if event.on_failure], "not the domain is deleted"


def test_domain_waits_for_terminating_pods_and_then_ends() -> None:
    leaving = domain_snapshot("inference-0", AUTO, found=ANNOTATED, in_use=True, restarted=PODS[1:2])
    assert plan_domain(leaving).intents == ()
    (release,) = plan_domain(domain_snapshot("inference-0", AUTO, found=ANNOTATED)).intents
    assert isinstance(release, Patch)
    assert release.body["metadata"]["finalizers"] == []
    (create,) = plan_domain(domain_snapshot("inference-0", AUTO)).intents
    assert isinstance(create, Create)
    assert create.body["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.parametrize(
    "found",
    [
        DELETED,
        with_meta(DELETED, annotations={"grove.io/recreate": "false"}),
        replace(ANNOTATED, metadata=replace(ANNOTATED.metadata, deletion_timestamp=None)),
    ],
    ids=["not annotated", "another value", "not deleted"],
)
def test_other_domains_restart_no_pods(found) -> None:
    plan = plan_domain(domain_snapshot("inference-0", AUTO, found=found, in_use=True, restarted=PODS))
    assert plan.intents == ()
    assert not is_to_be_recreated(found)


def test_message_names_the_annotation_until_it_is_set() -> None:
    state = DomainState.TERMINATING
    assert "annotate it with grove.io/recreate=true" in state_message(state, NVIDIA, "d", found=DELETED)
    assert state_message(state, NVIDIA, "d", found=ANNOTATED) == (
        "ComputeDomain d is being deleted, and is created again when its pods are gone"
    )
