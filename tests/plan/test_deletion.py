"""Deletion of a set: what is deleted, in which order, and what stays."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove import timing
from grove.api.intents import Delete, Patch
from grove.api.naming import labels, well_known
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata, Service
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.provider import Domain
from grove.plan.deletion import ORPHAN, plan_deletion
from grove.plan.snapshot import OwnedObjects
from grove.plan.timestamps import timestamp
from tests.plan.builders import a_clique, a_set, read_set

THEN = "2026-01-01T00:00:00Z"
LATER = timestamp(THEN) + 3600


def ending(*finalizers: str) -> PodCliqueSet:
    found = read_set(a_set("a:2"))
    meta = msgspec.structs.replace(
        found.metadata, uid="uid-set", resource_version="7", finalizers=finalizers, deletion_timestamp=THEN
    )
    return msgspec.structs.replace(found, metadata=meta)


SPECS: dict[Any, dict[str, Any]] = {
    PodClique: a_clique("a:2")["spec"],
    PodCliqueScalingGroup: {"replicas": 1, "minAvailable": 1, "cliqueNames": ["a"]},
    PodGang: {"podgroups": []},
    HorizontalPodAutoscaler: {"scaleTargetRef": {"kind": "X", "name": "x"}, "maxReplicas": 2},
}


def part(as_type: Any, name: str, owner: str, *, terminating: bool = False, **more: str) -> Any:
    """An object with our labels that `owner` controls; without a controller if that is empty."""
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "labels": labels.managed("wl") | {getattr(labels, label): value for label, value in more.items()},
    }
    if owner:
        reference = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": f"uid-{owner}", "controller": True}
        meta["ownerReferences"] = [reference]
    if terminating:
        meta["deletionTimestamp"] = THEN
    body = {"metadata": meta, "spec": SPECS.get(as_type, {})}
    return msgspec.json.decode(msgspec.json.encode(body), type=as_type)


def clique(name: str, owner: str = "set", *, terminating: bool = False) -> PodClique:
    found: PodClique = part(PodClique, name, owner, terminating=terminating)
    return found


OWNERS = {"all": "set", "group": "group", "clique": "member"}


def owned_objects(**changes: Any) -> OwnedObjects:
    known = OwnedObjects(
        services=(part(Service, "service", "set"),),
        groups=(part(PodCliqueScalingGroup, "group", "set"),),
        cliques=(clique("alone"), clique("member", "group")),
        gangs=(part(PodGang, "gang", "set"),),
        autoscalers=(part(HorizontalPodAutoscaler, "autoscaler", "set"),),
        claims=tuple(part(PartialObjectMetadata, f"of {name}", owner) for name, owner in OWNERS.items()),
        pods=(part(Pod, "one", "alone"), part(Pod, "two", "member")),
    )
    return msgspec.structs.replace(known, **changes)


def deleted(found: OwnedObjects) -> set[str]:
    """What the next step deletes, each with its UID."""
    intents = plan_deletion(ending(well_known.SET_FINALIZER), found, LATER).intents
    deletions = [intent for intent in intents if isinstance(intent, Delete)]
    assert all(deletion.uid == f"uid-{deletion.target.name}" for deletion in deletions)
    return {deletion.target.name for deletion in deletions}


CLAIMS = {"of all", "of group", "of clique"}
PARTS = {"group", "alone", "member", "gang", "autoscaler"}
REST = {"service", *PARTS, *CLAIMS}
TERMINATING = part(Pod, "one", "alone", terminating=True)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(owned_objects(), {"one", "two"}, id="pods first"),
        pytest.param(owned_objects(pods=()), REST, id="then the rest"),
        pytest.param(owned_objects(pods=(TERMINATING,), claims=()), PARTS, id="parts before pods are gone"),
        pytest.param(
            owned_objects(pods=(TERMINATING,)),
            REST,
            id="terminating pods not deleted again",
        ),
        pytest.param(owned_objects(pods=(part(Pod, "other", "foreign"),)), REST, id="foreign pods stay"),
        pytest.param(
            owned_objects(pods=(part(Pod, "alone-bcdfg", "", CLIQUE="alone"),)),
            {"alone-bcdfg"},
            id="orphans are deleted",
        ),
        pytest.param(
            owned_objects(pods=(part(Pod, "debugging", "", CLIQUE="alone"),)),
            REST,
            id="orphans with a foreign name stay",
        ),
        pytest.param(
            owned_objects(pods=(), gangs=(part(PodGang, "gang", "predecessor"),)),
            REST - {"gang"},
            id="objects of a former set of that name stay",
        ),
        pytest.param(
            owned_objects(pods=(), autoscalers=(part(HorizontalPodAutoscaler, "mine", "user"),)),
            REST - {"autoscaler"},
            id="foreign autoscalers stay",
        ),
        pytest.param(
            owned_objects(groups=(part(PodCliqueScalingGroup, "group", "foreign"),), pods=()),
            REST - {"group", "member", "of group", "of clique"},
            id="foreign group keeps its cliques",
        ),
        pytest.param(
            owned_objects(cliques=(clique("alone", terminating=True),)),
            {"one"},
            id="pods of a terminating clique deleted at once",
        ),
    ],
)
def test_next_deletes_of_terminating_set(found: OwnedObjects, expected: set[str]) -> None:
    assert deleted(found) == expected


@pytest.mark.parametrize(("grace", "asked"), [(None, 0.0), (30, -30.0)])
def test_other_deletes_wait_for_pods_for_limited_time(grace: int | None, asked: float) -> None:
    """The grace period starts with the delete, and the deletionTimestamp is its end."""
    meta = msgspec.structs.replace(TERMINATING.metadata, deletion_grace_period_seconds=grace)
    pod = msgspec.structs.replace(TERMINATING, metadata=meta)
    found = owned_objects(pods=(pod, part(Pod, "other", "foreign")))
    patience_ends = timestamp(THEN) + asked + timing.SCALE_IN_POD_WAIT
    waiting = plan_deletion(ending(well_known.SET_FINALIZER), found, patience_ends - 1)
    assert (waiting.intents, waiting.requeue_at) == ((), patience_ends)
    assert len(plan_deletion(ending(well_known.SET_FINALIZER), found, patience_ends).intents) == len(REST) + 1


def test_service_waits_for_pods_whose_clique_is_gone() -> None:
    found = owned_objects(pods=(TERMINATING,), claims=(), groups=(), cliques=(), gangs=(), autoscalers=())
    patience_ends = timestamp(THEN) + timing.SCALE_IN_POD_WAIT
    waiting = plan_deletion(ending(well_known.SET_FINALIZER), found, patience_ends - 1)
    assert (waiting.intents, waiting.requeue_at) == ((), patience_ends)
    assert deleted(found) == {"service"}


def test_parts_of_set_with_domains_wait_for_its_pods() -> None:
    found = owned_objects(pods=(TERMINATING,), claims=(), domains=(domain(),))
    assert plan_deletion(ending(well_known.SET_FINALIZER), found, timestamp(THEN)).intents == ()


def test_deletes_of_pods_name_their_clique_and_emit_no_events() -> None:
    plan = plan_deletion(ending(well_known.SET_FINALIZER), owned_objects(), LATER)
    deletes = [intent for intent in plan.intents if isinstance(intent, Delete)]
    assert [each.regarding and each.regarding.name for each in deletes] == ["alone", "member"]
    assert plan.events == ()


def test_finalizer_is_removed_when_nothing_is_left() -> None:
    (release,) = plan_deletion(ending(well_known.SET_FINALIZER, "other"), OwnedObjects(), LATER).intents
    assert isinstance(release, Patch)
    assert release.body["metadata"] == {"resourceVersion": "7", "finalizers": ["other"]}


def test_cascade_orphan_keeps_everything() -> None:
    (release,) = plan_deletion(ending(ORPHAN, well_known.SET_FINALIZER), owned_objects(), LATER).intents
    assert isinstance(release, Patch)
    assert release.body["metadata"]["finalizers"] == [ORPHAN]


def test_set_without_our_finalizer_plans_nothing() -> None:
    assert plan_deletion(ending("other"), owned_objects(), LATER).intents == ()


def test_orphaned_objects_stay_after_orphan_finalizer_removed() -> None:
    """An operator that was stopped or slow sees an ordinary terminating set, and objects without an owner."""
    orphaned = owned_objects(
        services=(part(Service, "service", ""),),
        groups=(part(PodCliqueScalingGroup, "group", ""),),
        cliques=(clique("alone", ""), clique("member", "group")),
        gangs=(part(PodGang, "gang", ""),),
        autoscalers=(part(HorizontalPodAutoscaler, "autoscaler", ""),),
        claims=(part(PartialObjectMetadata, "claim", ""),),
    )
    (release,) = plan_deletion(ending(well_known.SET_FINALIZER), orphaned, LATER).intents
    assert isinstance(release, Patch)
    assert release.target.kind == "PodCliqueSet"


@pytest.mark.parametrize(
    "found",
    [
        owned_objects(),
        owned_objects(pods=()),
        OwnedObjects(services=owned_objects().services),
        OwnedObjects(autoscalers=owned_objects().autoscalers),
        OwnedObjects(claims=owned_objects().claims),
    ],
)
def test_nothing_deleted_without_confirmed_ownership(
    found: OwnedObjects,
) -> None:
    """The cached children may be staler than the cached set."""
    witness, *deletions = plan_deletion(ending(well_known.SET_FINALIZER), found, LATER).intents
    assert isinstance(witness, Patch)
    assert set(witness.body["metadata"]) == {"resourceVersion"}
    assert deletions
    assert all(deletion.after == (witness.id,) for deletion in deletions)


def domain(**meta: Any) -> Domain:
    object_labels = {**labels.managed("wl"), labels.COMPONENT: labels.ComponentLabel.COMPUTE_DOMAIN.value}
    body = {"metadata": {"name": "wl-0", "labels": object_labels, **meta}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Domain)


HELD = {"finalizers": [well_known.COMPUTE_DOMAIN_FINALIZER]}


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        (domain(**HELD), True),
        (domain(), True),
        (domain(deletionTimestamp=THEN, **HELD), True),
        (domain(deletionTimestamp=THEN, finalizers=["driver"]), False),
        (domain(labels={}), False),
    ],
)
def test_set_stays_until_its_fabric_domains_are_released(found: Domain, waits: bool) -> None:
    empty = OwnedObjects(domains=(found,))
    assert (plan_deletion(ending(well_known.SET_FINALIZER), empty, LATER).intents == ()) is waits
    assert plan_deletion(ending(well_known.SET_FINALIZER, ORPHAN), empty, LATER).intents != ()
