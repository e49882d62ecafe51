"""Pods that are out of sight: seen to go, or to be looked for before anybody takes their place."""

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
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.operator.keys import ReplicaKey, SetKey
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.relabel import restore_labels
from grove.operator.watches.enqueue_slices import replicas
from grove.plan.desired.shared_claims import ClaimObjects
from tests.plan.builders import a_clique, a_pod, a_set, read_set

KEY = ReplicaKey("ns", "wl", 0)
CARRIED = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "0"}


def a_member(name: str = "p", version: int = 2, **words: bool) -> Pod:
    pod = a_pod(name, **words)
    meta = replace(pod.metadata, namespace="ns", resource_version=str(version))
    return replace(pod, metadata=replace(meta, labels={**meta.labels, **CARRIED}))


def a_gang(*names: str) -> PodGang:
    references = [{"namespace": "ns", "name": name} for name in names]
    body = {
        "metadata": {"name": "wl-0", "namespace": "ns", "resourceVersion": "3", "labels": CARRIED},
        "spec": {"podgroups": [{"name": "wl-0-a", "minReplicas": 1, "podReferences": references}]},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=PodGang)


@pytest.fixture
def caches() -> Caches:
    """A set whose gang names the pod `p`, which is there."""
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    caches.gangs.apply_event("ADDED", a_gang("p"))
    caches.pods.apply_event("ADDED", a_member())
    return caches


def deleted_pods(observer: Observer) -> frozenset[str]:
    snapshot = observer.replica(KEY)
    assert snapshot is not None
    return snapshot.deleted_pods


def test_a_pod_that_terminated_and_went_is_gone(caches):
    observer = Observer(caches)
    caches.pods.apply_event("MODIFIED", a_member(version=4, terminating=True))
    caches.pods.apply_event("DELETED", a_member(version=5, terminating=True))
    assert observer.lost_pods(KEY) == []
    assert deleted_pods(observer) == {"p"}


def test_a_pod_that_went_all_at_once_is_to_be_looked_for(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    (lost,) = observer.lost_pods(KEY)
    assert lost.metadata.name == "p"
    assert deleted_pods(observer) == frozenset()


def test_it_is_called_by_its_name_and_uid_and_gets_back_what_it_is_found_by():
    patch = restore_labels(a_member())
    assert (patch.target.kind, patch.target.name) == ("Pod", "p")
    assert patch.body == {"metadata": {"uid": "uid-p", "labels": CARRIED}}


def test_a_pod_that_answers_is_a_member_as_before(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    caches.pods.apply_reply(a_member(version=5))
    assert observer.lost_pods(KEY) == []
    assert deleted_pods(observer) == frozenset()


def test_a_pod_that_does_not_answer_is_gone(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    observer.resolve_lost_pods(KEY, Outcome((Result(restore_labels(a_member()), IntentState.CONFLICT, "p"),)))
    assert observer.lost_pods(KEY) == []
    assert deleted_pods(observer) == {"p"}


def test_while_nobody_can_say_it_is_still_lost(caches):
    observer = Observer(caches)
    caches.pods.apply_event("DELETED", a_member(version=4))
    observer.resolve_lost_pods(KEY, Outcome((Result(restore_labels(a_member()), IntentState.FAILED, "p"),)))
    assert len(observer.lost_pods(KEY)) == 1


def test_a_pod_that_no_gang_names_is_not_missed(caches):
    observer = Observer(caches)
    caches.gangs.apply_event(
        "MODIFIED", replace(gang := a_gang(), metadata=replace(gang.metadata, resource_version="9"))
    )
    caches.pods.apply_event("DELETED", a_member(version=4))
    assert observer.lost_pods(KEY) == []
    assert deleted_pods(observer) == frozenset()


def shared(observer: Observer) -> ClaimObjects:
    snapshot = observer.replica(KEY)
    assert snapshot is not None
    return snapshot.shared


def a_claim(name: str, **place: str) -> PartialObjectMetadata:
    carried = labels.for_claim("wl", {getattr(labels, key): value for key, value in place.items()})
    return PartialObjectMetadata(
        ObjectMeta(name=name, namespace="ns", uid=name, resource_version="3", labels=carried)
    )


def test_claims_are_seen_by_the_labels_of_their_part_once_all_are_known():
    caches = Caches()
    own = [{"name": "t", "scope": "AllReplicas"}]
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", resourceSharing=own)))
    clique = {**a_clique("a:1"), "metadata": {"name": "wl-0-a", "namespace": "ns", "labels": CARRIED}}
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
    assert "resourceclaims.resource.k8s.io" not in caches.unsynced, "nobody else waits for them"


def test_a_replica_of_which_only_a_claim_is_left_is_still_there():
    caches = Caches()
    caches.claims.replace([a_claim("wl-3-t", SET_REPLICA="3")], "4")
    assert {key.replica for key in replicas(caches, SetKey("ns", "wl"), None) if key} == {3}
