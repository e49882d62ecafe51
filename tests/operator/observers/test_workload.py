"""Pods that left the cache: deleted ones, and lost ones that are looked up before they are replaced."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podgang import PodGang
from grove.operator.caches.registry import Caches
from grove.operator.keys import ReplicaKey, SetKey
from grove.operator.observers.workload import Observer
from grove.operator.watches.enqueue_slices import replicas
from grove.plan.snapshot import ClaimObjects
from tests.plan.builders import a_clique, a_pod, a_set, read_set

KEY = ReplicaKey("ns", "wl", 0)
LABELS = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "0"}


def a_member(name: str = "p", version: int = 2, **state: bool) -> Pod:
    pod = a_pod(name, **state)
    meta = replace(pod.metadata, namespace="ns", resource_version=str(version))
    return replace(pod, metadata=replace(meta, labels={**meta.labels, **LABELS}))


def a_gang(*names: str) -> PodGang:
    references = [{"namespace": "ns", "name": name} for name in names]
    body = {
        "metadata": {"name": "wl-0", "namespace": "ns", "resourceVersion": "3", "labels": LABELS},
        "spec": {"podgroups": [{"name": "wl-0-a", "minReplicas": 1, "podReferences": references}]},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=PodGang)


@pytest.fixture
def caches() -> Caches:
    """A set whose gang refers to the existing pod `p`."""
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    caches.gangs.apply_event("ADDED", a_gang("p"))
    caches.pods.apply_event("ADDED", a_member())
    return caches


def lost_pods(observer: Observer) -> list[str]:
    snapshot = observer.replica(KEY)
    assert snapshot is not None
    return [pod.metadata.name for pod in snapshot.lost_pods]


def deleted_pods(observer: Observer) -> frozenset[str]:
    snapshot = observer.replica(KEY)
    assert snapshot is not None
    return snapshot.deleted_pods


def test_terminated_pod_is_deleted(caches):
    observer = Observer(caches)
    caches.pods.apply_event("MODIFIED", a_member(version=4, terminating=True))
    caches.pods.apply_event("DELETED", a_member(version=5, terminating=True))
    assert lost_pods(observer) == []
    assert deleted_pods(observer) == {"p"}


def test_pod_gone_without_terminating_is_lost(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    assert lost_pods(observer) == ["p"]
    assert deleted_pods(observer) == frozenset()


def test_lost_pod_found_again_is_a_member(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    caches.pods.apply_reply(a_member(version=5))
    assert lost_pods(observer) == []
    assert deleted_pods(observer) == frozenset()


def test_lost_pod_without_reference_is_forgotten(caches):
    observer = Observer(caches)
    caches.gangs.apply_event(
        "MODIFIED", replace(gang := a_gang(), metadata=replace(gang.metadata, resource_version="9"))
    )
    caches.pods.apply_event("DELETED", a_member(version=4))
    assert lost_pods(observer) == []
    assert deleted_pods(observer) == frozenset()


def shared(observer: Observer) -> ClaimObjects:
    snapshot = observer.replica(KEY)
    assert snapshot is not None
    return snapshot.shared


def a_claim(name: str, **owner: str) -> PartialObjectMetadata:
    object_labels = labels.for_claim("wl", {getattr(labels, key): value for key, value in owner.items()})
    return PartialObjectMetadata(
        ObjectMeta(name=name, namespace="ns", uid=name, resource_version="3", labels=object_labels)
    )


def test_claims_are_found_by_owner_labels_once_synced():
    caches = Caches()
    own = [{"name": "t", "scope": "AllReplicas"}]
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", resourceSharing=own)))
    clique = {**a_clique("a:1"), "metadata": {"name": "wl-0-a", "namespace": "ns", "labels": LABELS}}
    caches.cliques.apply_event("ADDED", msgspec.json.decode(msgspec.json.encode(clique), type=PodClique))
    mine = [
        a_claim("wl-all-t"),
        a_claim("wl-0-t", SET_REPLICA="0"),
        a_claim("wl-0-a-0-t", CLIQUE="wl-0-a", POD_INDEX="0"),
    ]
    others = [a_claim("wl-1-t", SET_REPLICA="1"), a_claim("wl-1-a-all-t", CLIQUE="wl-1-a")]
    observer = Observer(caches)
    caches.claims.replace([*mine, *others], "4")
    assert not shared(observer).visible, "templates are not known yet"
    caches.claim_templates.replace((), "4")
    assert shared(observer).claims == {claim.metadata.name: claim for claim in mine}
    assert shared(observer).visible
    assert "resourceclaims.resource.k8s.io" not in caches.unsynced, (
        "sets without shared claims do not wait for them"
    )


def test_replica_with_only_a_claim_is_listed():
    caches = Caches()
    caches.claims.replace([a_claim("wl-3-t", SET_REPLICA="3")], "4")
    assert {key.replica for key in replicas(caches, SetKey("ns", "wl"), None) if key} == {3}
