"""Snapshot files of small clusters, for commands that read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from grove.api.naming import labels
from grove.cluster_state.described import described_state
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState, KindState
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.snapshot_file import encode
from grove.kube.client.resource import NODES, PODS, Resource

Body = dict[str, Any]


def a_cluster(
    shape: str = "1x1x2x2",
    topologies: Iterable[str] = ("default",),
    gpus: int = 8,
    **objects: Iterable[Body],
) -> ClusterState:
    """Empty nodes, and objects by plural; a node of the shape is replaced by one of its name."""
    state = described_state(shape, gpus, kinds_of(new_caches(operator_setup()), "lease"), topologies)
    kinds = dict(state.kinds)
    for resource, found in state.kinds.items():
        added = {each["metadata"]["name"]: each for each in objects.get(resource.plural, ())}
        kept = [item for item in found.items if msgspec.json.decode(item)["metadata"]["name"] not in added]
        items = (*kept, *(Raw(msgspec.json.encode(each)) for each in added.values()))
        kinds[resource] = replace(found, items=items)
    return replace(state, kinds=kinds)


def node_of(state: ClusterState, name: str, **spec: Any) -> Body:
    """A node of a cluster, with another spec."""
    nodes = map(msgspec.json.decode, state.kind(NODES).items)
    (found,) = (each for each in nodes if each["metadata"]["name"] == name)
    return {**found, "spec": {**found.get("spec", {}), **spec}}


def a_pod(name: str, node: str, gpus: int, gang: str = "") -> Body:
    """A running pod; with a gang it is one of ours."""
    marks = {labels.MANAGED_BY: labels.OPERATOR, labels.GANG: gang} if gang else {}
    requests = {"requests": {"nvidia.com/gpu": str(gpus)}}
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1", "labels": marks},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": requests}]},
        "status": {"phase": "Running"},
    }


def without(state: ClusterState, resource: Resource, problem: str) -> ClusterState:
    """The same cluster, read without the right to list a kind."""
    return replace(state, kinds={**state.kinds, resource: KindState(resource, problem=problem)})


def only_namespace(state: ClusterState, namespace: str) -> ClusterState:
    """The same cluster, with the pods of one namespace only."""
    pods = replace(state.kind(PODS), namespace=namespace)
    return replace(state, kinds={**state.kinds, PODS: pods})


def written(state: ClusterState, folder: Path) -> str:
    """The path of a snapshot file."""
    file = folder / "cluster.json"
    file.write_bytes(encode(state))
    return str(file)
