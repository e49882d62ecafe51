"""The state of a busy cluster as `grove snapshot` writes it: the operator in memory places sets on described
nodes, of which some are cordoned, tainted or not ready, and beside pods that are not ours."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.described import described_state
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.snapshot_file import encode
from grove.dry_run.operator import DryOperator
from grove.dry_run.set_run import SetRun
from grove.kube.client.resource import NODES, PODS
from grove.operator.caches.resources import resource_of
from grove.operator.keys import SetKey
from grove.rules.podcliqueset.defaults import default_set

Body = dict[str, Any]
GPU, GPUS = "nvidia.com/gpu", 8
TOPOLOGY = "default"
_SETS = resource_of(PodCliqueSet.KIND)
_AGE = 3600.0


class Size(Struct, frozen=True):
    """How large the cluster is."""

    shape: str
    serving: int
    """Sets with a router, prefill and decode: 36 pods with 32 GPUs a replica, in three gangs."""
    replicas: int
    training: int
    """Gangs of 8 pods with 8 GPUs each, in one rack."""
    foreign: int
    """Pods that are not ours, with 1 to 4 GPUs."""
    waiting: int
    """Gangs that need more hosts than a rack has."""


SMALL = Size("1x2x4x8", serving=2, replicas=1, training=3, foreign=10, waiting=1)
LARGE = Size("5x10x10x10", serving=22, replicas=20, training=220, foreign=2_400, waiting=12)


def write_snapshot(path: Path, size: Size) -> None:
    """Write the snapshot file. Must be called in a running event loop."""
    path.write_bytes(encode(busy_state(size, time.time())))


def busy_state(size: Size, now: float) -> ClusterState:
    """The state at a time, which is the same at all times."""
    random = Random(7)
    began = now - _AGE
    setup = operator_setup()
    empty = described_state(size.shape, GPUS, kinds_of(new_caches(setup), "lease"), [TOPOLOGY])
    nodes = [msgspec.json.decode(item) for item in empty.kind(NODES).items]
    spoil(nodes, random)
    state = with_objects(empty, {NODES: nodes, PODS: list(foreign_pods(nodes, size.foreign, random))})
    operator = DryOperator(state, setup, began)
    operator.use_topologies([TOPOLOGY])
    for body in all_sets(size):
        stored = operator.memory.put(default_set(body), operator.now)
        key = SetKey(stored["metadata"]["namespace"], stored["metadata"]["name"])
        SetRun(operator, key, existed=True).run()
    found = {resource: operator.memory.objects(resource) for resource in state.kinds}
    return replace(with_objects(state, found), taken_at=now, server_version="v1.37.0")


def with_objects(state: ClusterState, bodies: Mapping[Any, Iterable[Body]]) -> ClusterState:
    """The state with other objects of some kinds."""
    kinds = {
        resource: replace(state.kind(resource), items=tuple(Raw(msgspec.json.encode(each)) for each in found))
        for resource, found in bodies.items()
    }
    return replace(state, kinds={**state.kinds, **kinds})


def spoil(nodes: list[Body], random: Random) -> None:
    """Cordon, taint and fail some nodes."""
    for node in nodes:
        chance = random.random()
        if chance < 0.02:
            node["spec"] = {**node.get("spec", {}), "unschedulable": True}
        elif chance < 0.05:
            taint = {"key": "maintenance", "effect": "NoSchedule"}
            node["spec"] = {**node.get("spec", {}), "taints": [taint]}
        elif chance < 0.06:
            node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


def foreign_pods(nodes: list[Body], count: int, random: Random) -> Iterator[Body]:
    """Running pods that are not ours, at most two a node, in the last third of the racks: gangs that need
    whole hosts find them elsewhere."""
    names = [each["metadata"]["name"] for each in nodes][-len(nodes) // 3 :]
    for number, node in enumerate(random.sample(names * 2, count)):
        requests = {GPU: str(random.randint(1, 4)), "cpu": "4"}
        resources = {"limits": requests, "requests": requests}
        container = {"name": "main", "image": "example.com/other:1", "resources": resources}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"other-{number:05}", "namespace": "others", "uid": f"other-{number}"},
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"phase": "Running"},
        }


def all_sets(size: Size) -> Iterator[Body]:
    """The sets, in three namespaces."""
    for number in range(-(-size.training // 40)):
        yield training(f"train-{number:02}", "training", min(40, size.training - 40 * number), 8)
    for number in range(size.serving):
        yield serving(f"serve-{number:02}", "inference", size.replicas)
    if size.waiting:
        yield training("too-large", "research", size.waiting, 16)


def serving(name: str, namespace: str, replicas: int) -> Body:
    """A router, and groups whose replicas are in one rack each."""
    groups = [
        {"name": "prefill", "replicas": 2, "minAvailable": 1, "cliqueNames": ["prefill-worker"]},
        {"name": "decode", "replicas": 2, "minAvailable": 1, "cliqueNames": ["decode-worker"]},
    ]
    packed = [{**each, "topologyConstraint": {"pack": {"required": "rack"}}} for each in groups]
    cliques = [clique("router", 4, 0), clique("prefill-worker", 8, 1), clique("decode-worker", 8, 1)]
    return pod_clique_set(name, namespace, replicas, cliques, "zone", podCliqueScalingGroups=packed)


def training(name: str, namespace: str, replicas: int, pods: int) -> Body:
    """Gangs of whole hosts in one rack."""
    return pod_clique_set(name, namespace, replicas, [clique("worker", pods, GPUS)], "rack")


def clique(name: str, replicas: int, gpus: int) -> Body:
    resources = {"limits": {"cpu": "2"} | ({GPU: str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "example.com/main:1", "resources": resources}
    return {
        "name": name,
        "spec": {"roleName": name, "replicas": replicas, "podSpec": {"containers": [container]}},
    }


def pod_clique_set(
    name: str, namespace: str, replicas: int, cliques: list[Body], level: str, **more: Any
) -> Body:
    constraint = {"topologyName": TOPOLOGY, "pack": {"required": level}}
    return {
        "apiVersion": _SETS.api_version,
        "kind": _SETS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "template": {"topologyConstraint": constraint, "cliques": cliques, **more},
        },
    }
