"""Event mapping of sets and replicas: which keys existing objects and changes enqueue."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from grove.api.meta import Condition, ObjectMeta
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
from grove.api.types.pod import Pod, PodStatus
from grove.api.types.podclique import PodClique
from grove.operator.caches.registry import Caches
from grove.operator.engine.engine import busy_delay
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import Key, ReplicaKey, SetKey
from grove.operator.watches.table import register
from grove.operator.watches.workloads import workload_watches
from tests.operator.watches.enqueued_keys import EnqueuedKeys, changed
from tests.plan.builders import a_set, read_set
from tests.topology.builders import packed

SET_KEY = SetKey("ns", "wl")


def replica(index: int) -> ReplicaKey:
    return ReplicaKey("ns", "wl", index)


def pod_of_replica(index: int) -> Pod:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: str(index)}
    return Pod(ObjectMeta(name=f"pod-{index}", namespace="ns", resource_version="2", labels=object_labels))


def enqueued(caches: Caches) -> set[Key]:
    """The keys that the registration of the watches enqueues, and all later ones."""
    keys: set[Key] = set()
    register(workload_watches(caches, KeyStates()), keys.add)
    return keys


def test_existing_objects_are_enqueued_on_registration():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", replicas=2)))
    caches.pods.apply_event("ADDED", pod_of_replica(5))  # of a surplus replica
    assert enqueued(caches) == {SET_KEY, replica(0), replica(1), replica(5)}


def test_pod_without_set_enqueues_replica():
    caches = Caches()
    caches.pods.apply_event("ADDED", pod_of_replica(3))
    assert enqueued(caches) == {replica(3)}


async def test_start_delay_applies_to_new_pods():
    caches, times = Caches(), []
    register(workload_watches(caches, KeyStates(), lambda _: 60.0), lambda key, at=0.0: times.append(at))
    now = asyncio.get_running_loop().time()
    caches.pods.apply_event("ADDED", pod_of_replica(3))
    assert [at >= now + 60.0 for at in times] == [True]
    caches.pods.apply_event("DELETED", pod_of_replica(3))
    assert times[1:] == [0.0]


async def test_deleted_pod_of_surplus_replica_enqueues_later():
    caches, times = Caches(), []
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", replicas=2)))
    for index in (1, 2):  # the second is surplus
        caches.pods.apply_event("ADDED", pod_of_replica(index))
    register(workload_watches(caches, KeyStates()), lambda key, at=0.0: times.append(at))
    times.clear()
    now = asyncio.get_running_loop().time()
    for index in (1, 2):
        caches.pods.apply_event("DELETED", pod_of_replica(index))
    assert times[0] == 0.0
    assert times[1] > now


async def test_start_delay_applies_to_pods_that_start():
    caches, times = Caches(), []
    found, loop = pod_of_replica(3), asyncio.get_running_loop()
    caches.pods.apply_event("ADDED", found)
    register(workload_watches(caches, KeyStates(), lambda _: 60.0), lambda key, at=0.0: times.append(at))
    ready = (Condition("Ready", "True", "", ""),)
    later = []
    for version, status in enumerate(
        (PodStatus(phase="Running"), PodStatus(conditions=ready), PodStatus(), PodStatus(phase="Failed")), 3
    ):
        times.clear()
        meta = msgspec.structs.replace(found.metadata, resource_version=str(version))
        caches.pods.apply_event("MODIFIED", msgspec.structs.replace(found, metadata=meta, status=status))
        later.append(times[0] - loop.time() > 1.0)
    assert later == [True, True, False, False], "not one that is no longer ready, or that has failed"


def test_finalizer_of_set_does_not_enqueue_replicas():
    caches, keys = Caches(), set()
    workload = read_set(a_set("a:1", replicas=2))
    caches.sets.apply_event("ADDED", workload)
    register(workload_watches(caches, KeyStates()), lambda key, *_: keys.add(key))
    for version, change, expected in (
        ("3", {"finalizers": ("grove.io/podcliqueset.grove.io",)}, {SET_KEY}),
        ("4", {"annotations": {"a": "b"}}, {SET_KEY, replica(0), replica(1)}),
    ):
        keys.clear()
        meta = msgspec.structs.replace(workload.metadata, resource_version=version, **change)
        workload = msgspec.structs.replace(workload, metadata=meta)
        caches.sets.apply_event("MODIFIED", workload)
        assert keys == expected


def test_busy_delay_grows_with_backlog_up_to_limit():
    assert [busy_delay(waiting) for waiting in (0, 100, 10_000)] == [0.0, 2.0, 8.0]


async def test_status_of_other_writer_enqueues_key():
    caches, keys = Caches(), set()
    workload, clique = read_set(a_set("a:1")), a_clique("wl-0-a", 0)
    caches.sets.apply_event("ADDED", workload)
    caches.cliques.apply_event("ADDED", clique)
    register(workload_watches(caches, KeyStates()), lambda key, *_: keys.add(key))
    for version, ours in (("3", False), ("4", True), ("5", False)):
        keys.clear()
        for cache, found, count in (
            (caches.sets, workload, "replicas"),
            (caches.cliques, clique, "ready_replicas"),
        ):
            meta = msgspec.structs.replace(found.metadata, resource_version=version)
            status = msgspec.structs.replace(found.status, **{count: int(version)})
            written = msgspec.structs.replace(found, metadata=meta, status=status)
            if ours:
                cache.apply_reply(written)
            cache.apply_event("MODIFIED", written)
        assert keys == (set() if ours else {SET_KEY, replica(0)})


async def test_status_of_object_without_labels_enqueues_nothing():
    caches, keys = Caches(), set()
    clique, object_labels = a_clique("wl-0-a", 0), {labels.MANAGED_BY: labels.OPERATOR}
    stripped = msgspec.structs.replace(clique.metadata, labels=object_labels)
    lost = msgspec.structs.replace(clique, metadata=stripped)
    caches.cliques.apply_event("ADDED", lost)
    register(workload_watches(caches, KeyStates()), lambda key, *_: keys.add(key))
    keys.clear()
    later = msgspec.structs.replace(stripped, resource_version="3")
    status = msgspec.structs.replace(lost.status, ready_replicas=7)
    caches.cliques.apply_event("MODIFIED", msgspec.structs.replace(lost, metadata=later, status=status))
    assert keys == set()


def test_set_added_after_registration_is_enqueued():
    caches = Caches()
    keys = enqueued(caches)
    assert keys == set()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    assert keys == {SET_KEY, replica(0)}


def an_autoscaler(version: int, **change: object) -> HorizontalPodAutoscaler:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "4"}
    body: Any = {
        "metadata": {
            "name": "wl-4-a", "namespace": "ns", "resourceVersion": str(version), "labels": object_labels
        },
        "spec": {"scaleTargetRef": {"kind": "PodClique", "name": "a"}, "maxReplicas": 3, "metrics": [{}]},
    }  # fmt: skip
    body["spec"] |= change
    return msgspec.json.decode(msgspec.json.encode(body), type=HorizontalPodAutoscaler)


def test_autoscaler_enqueues_replica_on_spec_change_only():
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


def test_topology_enqueues_only_sets_that_name_it():
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
    for event, topology, enqueues in steps:
        keys.clear()
        caches.topologies.apply_event(event, topology)
        assert keys == ({SET_KEY, replica(0), replica(1)} if enqueues else set()), (event, topology)


def test_topology_binding_enqueues_sets_that_name_it():
    caches = Caches()
    caches.sets.apply_event("ADDED", read_set(packed(a_set("a:1"), "rack")))
    keys = enqueued(caches)
    keys.clear()
    spec = ClusterTopologyBindingSpec(levels=(TopologyLevel("rack", "r"),))
    meta = ObjectMeta(name="racks", uid="u", resource_version="3", generation=1)
    caches.topology_bindings.apply_event("ADDED", ClusterTopologyBinding(metadata=meta, spec=spec))
    assert keys == {SET_KEY, replica(0)}


def a_claim(version: int, deleted: str | None = None, **owner: str) -> PartialObjectMetadata:
    object_labels = labels.for_claim("wl", {getattr(labels, key): value for key, value in owner.items()})
    meta = ObjectMeta(
        name="claim", namespace="ns", uid="u", resource_version=str(version), labels=object_labels
    )
    return PartialObjectMetadata(msgspec.structs.replace(meta, deletion_timestamp=deleted))


def a_clique(name: str, index: int) -> PodClique:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: str(index)}
    body = {
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "2", "labels": object_labels},
        "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": []}},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=PodClique)


def test_claim_enqueues_its_replica():
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
    for version, (owner, expected) in enumerate(cases):
        keys.clear()
        caches.claims.apply_event("ADDED", a_claim(3 * version + 3, **owner))
        assert keys == expected, owner
        keys.clear()
        caches.claims.apply_event("MODIFIED", a_claim(3 * version + 4, **owner))
        assert keys == set(), "a status change enqueues nothing"
        caches.claims.apply_event("DELETED", a_claim(3 * version + 5, **owner))
        assert keys == ({SET_KEY} if not owner else expected), owner


def test_claim_template_enqueues_referring_sets():
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


def test_claims_synced_enqueues_sets_with_shared_claims():
    caches = Caches()
    shared = [{"name": "t", "scope": "AllReplicas"}]
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", resourceSharing=shared)))
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", name="other")))
    keys = enqueued(caches)
    keys.clear()
    caches.claims.replace((), "9")
    assert keys == {SET_KEY, replica(0)}


async def test_rows_of_workloads_enqueue_with_their_delays():
    caches = Caches()
    caches.sets.apply_event("ADDED", workload := read_set(a_set("a:1")))
    keys = EnqueuedKeys(workload_watches(caches, KeyStates(), lambda _: 3.0))
    (role, service), clique = (PartialObjectMetadata(pod_of_replica(0).metadata),) * 2, a_clique("wl-0-a", 0)
    both = {SET_KEY: 0.0, replica(0): 0.0}
    terminating = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
    rows = [
        ("the spec of the set", changed(caches.sets, workload, 3, generation=2), both),
        ("a new clique", changed(caches.cliques, clique, 4), {replica(0): 3.0}),
        ("the spec of the clique", changed(caches.cliques, clique, 5, generation=2), {replica(0): 0.0}),
        ("nothing of the clique", changed(caches.cliques, clique, 6, generation=2), {}),
        ("a new role", changed(caches.roles, role, 7), both),
        ("the role", changed(caches.roles, role, 8), {SET_KEY: 0.0}),
        ("a new service", changed(caches.services, service, 9), {replica(0): 3.0}),
        ("the service", changed(caches.services, service, 10), {replica(0): 0.0}),
        ("a new pod", changed(caches.pods, pod_of_replica(0), 11), {replica(0): 3.0}),
        ("the status of the pod", changed(caches.pods, pod_of_replica(0), 12), {replica(0): 3.1}),
        ("the end of the pod", changed(caches.pods, pod_of_replica(0), 13, **terminating), {replica(0): 0.0}),
        ("a surplus pod", changed(caches.pods, pod_of_replica(1), 14), {replica(1): 3.0}),
        ("its status", changed(caches.pods, pod_of_replica(1), 15), {replica(1): 0.5}),
        ("deletion of the pod", changed(caches.pods, pod_of_replica(0), 16, "DELETED"), {replica(0): 0.0}),
        ("the limit", lambda: [act(SET_KEY) for act in caches.sizes._listeners], both | {replica(1): 0.0}),
        ("deletion of the set", changed(caches.sets, workload, 17, "DELETED"), both | {replica(1): 0.0}),
    ]
    for what, act, expected in rows:
        assert keys.after(act) == expected, what
