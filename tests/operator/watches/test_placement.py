"""Which replicas a relabelled node enqueues, and what the claims of their pods refer to."""

from __future__ import annotations

import msgspec

from grove import timing
from grove.api.naming import labels
from grove.api.types.cluster.device_objects import AllocatedClaim
from grove.api.types.cluster.volume_objects import StorageClass, Volume, VolumeClaim
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.registry import Caches
from grove.operator.keys import ReplicaKey
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.placement import placement_watches
from grove.operator.watches.table import Watch
from tests.operator.cluster_builders import listed_nodes, node
from tests.operator.observers.cluster.test_cluster_view import apply
from tests.operator.observers.cluster.test_device_use import class_, listed_devices, slice_
from tests.operator.watches.enqueued_keys import EnqueuedKeys
from tests.plan.builders import a_clique, a_set, read_set


def pod(name: str, replica: str, on: str) -> Pod:
    identity = {labels.PART_OF: "wl", labels.SET_REPLICA: replica, labels.MANAGED_BY: labels.OPERATOR}
    metadata = {"name": name, "namespace": "ns", "resourceVersion": "1", "labels": identity}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": on}}, Pod)


def watches(caches: Caches, view: ClusterView) -> tuple[Watch, ...]:
    assert caches.volumes is not None
    return placement_watches(caches, view, caches.volumes, FabricLookup(caches))


async def test_relabelled_node_enqueues_replicas_of_its_pods() -> None:
    caches, nodes = Caches(placement=True), listed_nodes(node("a"), node("b"))
    caches.pods.replace([pod("p", "0", "a"), pod("q", "0", "a"), pod("r", "1", "b"), pod("s", "2", "")], "1")
    view = ClusterView(nodes, ClusterPods(), Devices())
    enqueued = EnqueuedKeys(watches(caches, view))
    view.node("a")
    relabelled = node("a", 2, zone="elsewhere")
    first = ReplicaKey("ns", "wl", 0)
    assert enqueued.after(apply, nodes, "MODIFIED", relabelled) == {first: timing.BATCH_DELAY}
    more = node("a", 3, zone="elsewhere", cpu="9")
    assert enqueued.after(apply, nodes, "MODIFIED", more) == {}


REPLICA = ReplicaKey("ns", "wl", 0)


def caches_with(**pod_spec: object) -> Caches:
    """The caches with one set whose pods have this spec, and another one without claims."""
    caches, body = Caches(placement=True), a_set("a:1")
    body["spec"]["template"]["cliques"] = [a_clique("a:1", **pod_spec)]
    caches.sets.apply_event("ADDED", read_set(body))
    caches.sets.apply_event("ADDED", read_set(a_set("a:1", name="other")))
    return caches


def claiming_devices() -> Caches:
    return caches_with(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "two"}])


def an_object(name: str, version: int = 1, **fields: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}, **fields}


async def test_claim_template_enqueues_the_sets_that_name_it() -> None:
    caches = claiming_devices()
    enqueued = EnqueuedKeys(watches(caches, ClusterView(listed_nodes(), ClusterPods(), Devices())))

    def create(name: str) -> None:
        body = msgspec.json.encode(an_object(name, spec={"spec": {}}))
        found = msgspec.json.decode(body, type=ResourceClaimTemplateObject)
        caches.claim_templates.apply_event("ADDED", found)

    assert enqueued.after(create, "two") == {REPLICA: 0.0}
    assert enqueued.after(create, "three") == {}


async def test_claim_enqueues_the_sets_that_name_it() -> None:
    caches = caches_with(resourceClaims=[{"name": "gpus", "resourceClaimName": "two"}])
    enqueued = EnqueuedKeys(watches(caches, ClusterView(listed_nodes(), ClusterPods(), Devices())))
    assert caches.devices is not None
    known = caches.devices.claims

    def event(kind: str, name: str, version: int) -> None:
        known.apply_event(kind, msgspec.convert(an_object(name, version), AllocatedClaim))

    assert enqueued.after(event, "ADDED", "two", 1) == {REPLICA: 0.0}
    assert enqueued.after(event, "MODIFIED", "two", 2) == {}
    assert enqueued.after(event, "ADDED", "three", 3) == {}
    assert enqueued.after(event, "DELETED", "two", 4) == {REPLICA: 0.0}


async def test_changed_device_classes_enqueue_sets_with_claims() -> None:
    caches, devices = claiming_devices(), listed_devices()
    view = ClusterView(listed_nodes(node("a")), ClusterPods(), devices)
    enqueued = EnqueuedKeys(watches(caches, view))
    assert view.device_catalog is not None
    assert enqueued.after(devices.classes.apply_event, "MODIFIED", class_("true", 2)) == {REPLICA: 0.0}
    devices.classes.apply_event("MODIFIED", class_(version=3))
    assert view.device_catalog.smallest == {"gpus": 4}

    def shrink(count: int, version: int) -> None:
        devices.slices.apply_event("MODIFIED", slice_("b", count, version))
        view.take_changed_nodes()

    assert enqueued.after(shrink, 2, 4) == {REPLICA: 0.0}, "all devices of a node are fewer now"
    devices.slices.apply_event("MODIFIED", slice_("a", 7, 5))
    assert enqueued.after(view.take_changed_nodes) == {}


async def test_class_enqueues_sets_that_request_its_resource() -> None:
    limits = {"limits": {"example.com/gpu": "1"}}
    caches = caches_with(containers=[{"name": "c", "image": "i", "resources": limits}])
    devices = Devices()
    enqueued = EnqueuedKeys(watches(caches, ClusterView(listed_nodes(), ClusterPods(), devices)))
    assert enqueued.after(devices.classes.apply_event, "ADDED", class_()) == {}
    named = class_(version=2, extended="example.com/gpu")
    assert enqueued.after(devices.classes.apply_event, "MODIFIED", named) == {REPLICA: 0.0}


async def test_volumes_enqueue_the_sets_whose_pods_have_them() -> None:
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    caches = caches_with(volumes=[{"name": "data", **source}])
    volumes = caches.volumes
    assert volumes is not None
    enqueued = EnqueuedKeys(watches(caches, ClusterView(listed_nodes(), ClusterPods(), Devices())))

    def claim(name: str, phase: str, version: int) -> None:
        body = an_object(name, version, spec={"volumeName": "pv"}, status={"phase": phase})
        volumes.claims.apply_event("MODIFIED", msgspec.convert(body, VolumeClaim))

    def volume(claim_name: str, version: int) -> None:
        spec = {"claimRef": {"namespace": "ns", "name": claim_name}}
        body = {"metadata": {"name": "pv", "resourceVersion": str(version)}, "spec": spec}
        volumes.volumes.apply_event("MODIFIED", msgspec.convert(body, Volume))

    assert enqueued.after(claim, "data", "Pending", 1) == {REPLICA: 0.0}
    assert enqueued.after(claim, "data", "Pending", 2) == {}
    assert enqueued.after(claim, "data", "Bound", 3) == {REPLICA: 0.0}
    assert enqueued.after(claim, "unknown", "Bound", 4) == {}
    assert enqueued.after(volume, "unknown", 5) == {}
    assert enqueued.after(volume, "data", 6) == {REPLICA: 0.0}
    assert enqueued.after(volumes.classes.replace, [], "7") == {REPLICA: 0.0}

    def storage_class(version: int, mode: str) -> None:
        body = an_object("fast", version, volumeBindingMode=mode)
        volumes.classes.apply_event("MODIFIED", msgspec.convert(body, StorageClass))

    assert enqueued.after(storage_class, 8, "Immediate") == {REPLICA: 0.0}
    assert enqueued.after(storage_class, 9, "Immediate") == {}
    assert enqueued.after(storage_class, 10, "WaitForFirstConsumer") == {REPLICA: 0.0}
