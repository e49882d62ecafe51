"""The state of a cluster that does not exist: empty nodes in a shape such as `2x2x4x8`, and a topology of
their labels."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from grove.api.types.clustertopology import ClusterTopology
from grove.cluster_state.kinds import TOPOLOGIES
from grove.cluster_state.model import ClusterState, KindState, ReadKind
from grove.kube.client.resource import DEVICE_CLASSES, NODES, PRIORITY_CLASSES, RESOURCE_SLICES, Resource
from grove.local.cluster.cluster_shape import BLOCK, HOST, RACK, ZONE, node_manifests, parse_shape
from grove.local.standins.dra.objects import device_classes, resource_slice

LEVELS = {"zone": ZONE, "block": BLOCK, "rack": RACK, "host": HOST}


def described_state(
    shape: str, gpus: int, kinds: Iterable[ReadKind], topologies: Iterable[str] = ()
) -> ClusterState:
    """A cluster of ready, empty nodes, with a topology of each of these names, and with the devices by which
    pods join NVLink domains if nodes have GPUs. Every kind that is asked for is served but PriorityClasses:
    which ones there would be is not known. Raises LocalError if the shape is none."""
    parsed = parse_shape(shape)
    nodes = [_ready(each) for each in node_manifests(parsed, parsed.size, gpus)]
    names = [each["metadata"]["name"] for each in nodes]
    objects: dict[Resource, Iterable[Mapping[str, Any]]] = {
        NODES: nodes,
        TOPOLOGIES: map(_topology, topologies),
        DEVICE_CLASSES: device_classes(),
        RESOURCE_SLICES: (resource_slice(name, name) for name in names if gpus),
    }
    found = {kind.resource: KindState(kind.resource) for kind in kinds}
    for resource, bodies in objects.items():
        found[resource] = KindState(resource, tuple(map(_encoded, bodies)))
    found[PRIORITY_CLASSES] = KindState(PRIORITY_CLASSES, served=False)
    source = f"the shape {parsed} with {gpus} GPUs a node"
    return ClusterState(found, time.time(), source=source)


def _ready(node: dict[str, Any]) -> Mapping[str, Any]:
    status = {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}
    return {**node, "status": status}


def _topology(name: str) -> Mapping[str, Any]:
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS.items()]
    kind = ClusterTopology.KIND
    metadata = {"name": name, "uid": f"described-{name}"}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": metadata,
        "spec": {"levels": levels},
    }


def _encoded(body: Mapping[str, Any]) -> Raw:
    return Raw(msgspec.json.encode(body))
