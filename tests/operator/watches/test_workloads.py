"""Which keys are woken, whenever one begins to listen."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.clustertopology import (
    ClusterTopology,
    ClusterTopologyBinding,
    ClusterTopologyBindingSpec,
    ClusterTopologySpec,
    TopologyLevel,
)
from grove.api.types.kubernetes_objects import (
    HorizontalPodAutoscaler,
    PartialObjectMetadata,
    ResourceClaimTemplateObject,
)
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.operator.caches.registry import Caches
from grove.operator.keys import Key, ReplicaKey, SetKey
from grove.operator.watches.workloads import busy_delay, register_handlers
from tests.plan.builders import a_set, read_set
from tests.topology.builders import packed

SET_KEY = SetKey("ns", "wl")


def replica(index: int) -> ReplicaKey:
    return ReplicaKey("ns", "wl", index)


def pod_of_replica(index: int) -> Pod:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: str(index)}
    return Pod(ObjectMeta(name=f"pod-{index}", namespace="ns", resource_version="2", labels=carried))


def enqueued(caches: Caches) -> set[Key]:
    """The keys that are woken by beginning to listen."""
    keys: set[Key] = set()
    register_handlers(caches, keys.add)
    return keys


def test_what_is_there_already_is_news_to_whoever_begins_late():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", replicas=2)))
    caches.pods.apply_event("ADDED", pod_of_replica(5))  # of a replica that is one too many
    assert enqueued(caches) == {SET_KEY, replica(0), replica(1), replica(5)}


def test_a_pod_whose_set_is_gone_wakes_its_replica():
    caches = Caches()
    caches.pods.apply_event("ADDED", pod_of_replica(3))
    assert enqueued(caches) == {replica(3)}


async def test_while_many_wait_what_comes_can_wait_and_what_goes_cannot():
    caches, moments = Caches(), []
    register_handlers(caches, lambda key, at=0.0: moments.append(at), busy_delay=lambda: 60.0)
    now = asyncio.get_running_loop().time()
    caches.pods.apply_event("ADDED", pod_of_replica(3))
    assert [at >= now + 60.0 for at in moments] == [True]
    caches.pods.apply_event("DELETED", pod_of_replica(3))
    assert moments[1:] == [0.0]


async def test_who_leaves_is_looked_at_in_its_turn():
    caches, moments = Caches(), []
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", replicas=2)))
    for index in (1, 2):  # the second is one too many
        caches.pods.apply_event("ADDED", pod_of_replica(index))
    register_handlers(caches, lambda key, at=0.0: moments.append(at))
    moments.clear()
    now = asyncio.get_running_loop().time()
    for index in (1, 2):
        caches.pods.apply_event("DELETED", pod_of_replica(index))
    assert moments[0] == 0.0
    assert moments[1] > now


def test_leisure_grows_with_those_who_wait_up_to_a_limit():
    assert [busy_delay(waiting) for waiting in (0, 100, 10_000)] == [0.0, 2.0, 8.0]


async def test_a_status_that_somebody_else_writes_wakes_whose_it_is():
    caches, keys = Caches(), set()
    whole, clique = read_set(a_set("a:1")), a_clique("wl-0-a", 0)
    caches.sets.apply_event("ADDED", whole)
    caches.cliques.apply_event("ADDED", clique)
    register_handlers(caches, lambda key, *_: keys.add(key))
    for version, ours in (("3", False), ("4", True), ("5", False)):
        keys.clear()
        for cache, found, count in (
            (caches.sets, whole, "replicas"),
            (caches.cliques, clique, "ready_replicas"),
        ):
            meta = msgspec.structs.replace(found.metadata, resource_version=version)
            status = msgspec.structs.replace(found.status, **{count: int(version)})
            written = msgspec.structs.replace(found, metadata=meta, status=status)
            if ours:
                cache.apply_reply(written)
            cache.apply_event("MODIFIED", written)
        assert keys == (set() if ours else {SET_KEY, replica(0)})


async def test_nobody_is_woken_for_what_does_not_say_where_it_belongs():
    caches, keys = Caches(), set()
    clique, carried = a_clique("wl-0-a", 0), {labels.MANAGED_BY: labels.OPERATOR}
    stripped = msgspec.structs.replace(clique.metadata, labels=carried)
    lost = msgspec.structs.replace(clique, metadata=stripped)
    caches.cliques.apply_event("ADDED", lost)
    register_handlers(caches, lambda key, *_: keys.add(key))
    keys.clear()
    later = msgspec.structs.replace(stripped, resource_version="3")
    status = msgspec.structs.replace(lost.status, ready_replicas=7)
    caches.cliques.apply_event("MODIFIED", msgspec.structs.replace(lost, metadata=later, status=status))
    assert keys == set()


def test_what_comes_later_wakes_as_well():
    caches = Caches()
    keys = enqueued(caches)
    assert keys == set()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    assert keys == {SET_KEY, replica(0)}


def an_autoscaler(version: int, **change: object) -> HorizontalPodAutoscaler:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "4"}
    body: Any = {
        "metadata": {
            "name": "wl-4-a", "namespace": "ns", "resourceVersion": str(version), "labels": carried
        },
        "spec": {"scaleTargetRef": {"kind": "PodClique", "name": "a"}, "maxReplicas": 3, "metrics": [{}]},
    }  # fmt: skip
    body["spec"] |= change
    return msgspec.json.decode(msgspec.json.encode(body), type=HorizontalPodAutoscaler)


def test_what_an_autoscaler_measures_wakes_nobody_but_a_change_of_its_spec_does():
    caches = Caches()
    caches.autoscalers.apply_event("ADDED", an_autoscaler(2))
    keys = enqueued(caches)
    assert keys == {replica(4)}
    keys.clear()
    caches.autoscalers.apply_event("MODIFIED", an_autoscaler(3))
    assert keys == set()
    caches.autoscalers.apply_event("MODIFIED", an_autoscaler(4, metrics=[{"type": "Pods"}]))
    assert keys == {replica(4)}


def a_topology(name: str = "racks", generation: int = 1, version: str = "3") -> ClusterTopology:
    meta = ObjectMeta(name=name, uid="u", resource_version=version, generation=generation)
    return ClusterTopology(metadata=meta, spec=ClusterTopologySpec(levels=(TopologyLevel("rack", "r"),)))


def test_a_topology_wakes_the_sets_that_mean_it_and_no_other():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(packed(a_set("a:1", replicas=2), "rack")))
    caches.sets.apply_event("ADDED", read_set(packed(a_set("a:1", name="other"), "rack", name="others")))
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", name="indifferent")))
    keys = enqueued(caches)
    steps = [
        ("ADDED", a_topology(), True),
        ("MODIFIED", a_topology(version="4"), False),  # its status
        ("MODIFIED", a_topology(generation=2, version="5"), True),
        ("DELETED", a_topology(generation=2, version="6"), True),
    ]
    for event, topology, wakes in steps:
        keys.clear()
        caches.topologies.apply_event(event, topology)
        assert keys == ({SET_KEY, replica(0), replica(1)} if wakes else set()), (event, topology)


def test_a_binding_of_the_name_wakes_them_too():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(packed(a_set("a:1"), "rack")))
    keys = enqueued(caches)
    keys.clear()
    spec = ClusterTopologyBindingSpec(levels=(TopologyLevel("rack", "r"),))
    meta = ObjectMeta(name="racks", uid="u", resource_version="3", generation=1)
    caches.topology_bindings.apply_event("ADDED", ClusterTopologyBinding(metadata=meta, spec=spec))
    assert keys == {SET_KEY, replica(0)}


def a_claim(version: int, deleted: str | None = None, **place: str) -> PartialObjectMetadata:
    carried = labels.for_claim("wl", {getattr(labels, key): value for key, value in place.items()})
    meta = ObjectMeta(name="claim", namespace="ns", uid="u", resource_version=str(version), labels=carried)
    return PartialObjectMetadata(msgspec.structs.replace(meta, deletion_timestamp=deleted))


def a_clique(name: str, index: int) -> PodClique:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: str(index)}
    body = {
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "2", "labels": carried},
        "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": []}},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=PodClique)


def test_a_claim_wakes_the_replica_that_it_belongs_to():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", replicas=3)))
    caches.cliques.apply_event("ADDED", a_clique("wl-2-a", 2))
    keys = enqueued(caches)
    cases = [
        ({"SET_REPLICA": "1"}, {replica(1)}),
        ({"CLIQUE": "wl-2-a", "POD_INDEX": "0"}, {replica(2)}),
        ({"CLIQUE": "wl-7-a"}, set()),
        ({}, {SET_KEY, replica(0), replica(1), replica(2)}),
    ]
    for version, (place, expected) in enumerate(cases):
        keys.clear()
        caches.claims.apply_event("ADDED", a_claim(3 * version + 3, **place))
        assert keys == expected, place
        keys.clear()
        caches.claims.apply_event("MODIFIED", a_claim(3 * version + 4, **place))
        assert keys == set(), "who uses it is not news"
        caches.claims.apply_event("DELETED", a_claim(3 * version + 5, **place))
        assert keys == ({SET_KEY} if not place else expected), place


def test_a_template_wakes_the_sets_that_refer_to_it_when_it_comes():
    caches = Caches()
    shared = [{"name": "t", "namespace": "elsewhere", "scope": "AllReplicas"}]
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", resourceSharing=shared)))
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", name="other")))
    keys = enqueued(caches)
    for namespace, expected in (("ns", set()), ("elsewhere", {SET_KEY, replica(0)})):
        keys.clear()
        body = {"metadata": {"namespace": namespace, "name": "t", "uid": "u"}, "spec": {"spec": {}}}
        found = msgspec.json.decode(msgspec.json.encode(body), type=ResourceClaimTemplateObject)
        caches.claim_templates.apply_event("ADDED", found)
        assert keys == expected


def test_sight_of_claims_wakes_those_who_share():
    caches = Caches()
    shared = [{"name": "t", "scope": "AllReplicas"}]
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", resourceSharing=shared)))
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", name="other")))
    keys = enqueued(caches)
    keys.clear()
    caches.claims.replace((), "9")
    assert keys == {SET_KEY, replica(0)}
