"""Builders of pods and nodes of the cluster, as the watch sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.types import kubernetes_objects
from grove.api.types.cluster.scheduling_pod import SchedulingPod
from grove.kube.client.resource import PODS
from grove.kube.client.watch import Event, EventDecoder
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.nodes import Nodes

OURS = {"app.kubernetes.io/managed-by": "grove-operator", "grove.io/podgang": "gang"}
_decoder = EventDecoder(SchedulingPod, PODS)


def pod(
    name: str = "p",
    version: int = 1,
    node: str = "",
    cpu: str = "1",
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> SchedulingPod:
    """A pod of the namespace `n`. `spec`: further fields, in the spelling of the API."""
    body = {
        "metadata": {
            "name": name,
            "namespace": "n",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:10Z",
            "labels": {"app": "x", **(labels or {})},
            "deletionTimestamp": spec.pop("deletionTimestamp", None),
        },
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {"phase": "Pending", **(status or {})},
    }
    event = _decoder.decode(msgspec.json.encode({"type": "ADDED", "object": body}))
    assert isinstance(event, Event), event
    return event.object


def listed(*pods: SchedulingPod) -> ClusterPods:
    """A synced cache of these pods."""
    found = ClusterPods()
    found.replace(map(found.compact, pods), "1")
    return found


def node(
    name: str = "a",
    version: int = 1,
    ready: str = "True",
    zone: str = "z",
    unschedulable: bool = True,
    **allocatable: str,
) -> kubernetes_objects.Node:
    """A tainted node, cordoned and in the zone `z` by default."""
    body: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "resourceVersion": str(version), "labels": {"zone": zone}},
        "spec": {
            "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
            "unschedulable": unschedulable,
        },
        "status": {
            "allocatable": allocatable or {"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": ready}, {"type": "DiskPressure", "status": "False"}],
        },
    }
    return msgspec.convert(body, kubernetes_objects.Node)


def listed_nodes(*found: kubernetes_objects.Node) -> Nodes:
    """A synced cache of these nodes."""
    nodes = Nodes(placement=True)
    nodes.require({"zone"})
    listing = nodes._new_list()
    listing.cache.replace(found, "1")
    nodes._use(listing)
    return nodes
