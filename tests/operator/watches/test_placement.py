"""Which replicas a relabelled node enqueues."""

from __future__ import annotations

import msgspec

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.registry import Caches
from grove.operator.keys import ReplicaKey
from grove.operator.observers.cluster_view import ClusterView
from grove.operator.watches.placement import placement_watches
from tests.operator.cluster_builders import listed_nodes, node
from tests.operator.observers.test_cluster_view import apply
from tests.operator.watches.enqueued_keys import EnqueuedKeys


def pod(name: str, replica: str, on: str) -> Pod:
    identity = {labels.PART_OF: "wl", labels.SET_REPLICA: replica, labels.MANAGED_BY: labels.OPERATOR}
    metadata = {"name": name, "namespace": "ns", "resourceVersion": "1", "labels": identity}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": on}}, Pod)


async def test_relabelled_node_enqueues_replicas_of_its_pods() -> None:
    caches, nodes = Caches(placement=True), listed_nodes(node("a"), node("b"))
    caches.pods.replace([pod("p", "0", "a"), pod("q", "0", "a"), pod("r", "1", "b"), pod("s", "2", "")], "1")
    view = ClusterView(nodes, ClusterPods(), Devices())
    enqueued = EnqueuedKeys(placement_watches(caches, view))
    view.node("a")
    relabelled = node("a", 2, zone="elsewhere")
    first = ReplicaKey("ns", "wl", 0)
    assert enqueued.after(apply, nodes, "MODIFIED", relabelled) == {first: timing.BATCH_DELAY}
    more = node("a", 3, zone="elsewhere", cpu="9")
    assert enqueued.after(apply, nodes, "MODIFIED", more) == {}
