"""Boards with workloads of several namespaces."""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from grove.cluster_state.model import ClusterState
from grove.explanation.reading import CLIQUES, GANGS, GROUPS, SETS
from grove.kube.client.resource import PODS
from tests.cluster_state.states import shaped, with_objects
from tests.plan.simulator.simulator import Simulator
from tests.views.builders import a_simulator

NODE = "z0-b0-r0-h0"


def with_workload(state: ClusterState, sim: Simulator, namespace: str = "ns") -> ClusterState:
    """The state with all objects of a simulator, moved to a namespace."""
    for resource in (SETS, GROUPS, CLIQUES, GANGS, PODS):
        stored = (
            each.replace(b'"ns"', f'"{namespace}"'.encode()) for each in sim.api.all(resource.kind).values()
        )
        known = state.kind(resource)
        items = (*known.items, *map(Raw, stored))
        state = replace(state, kinds={**state.kinds, resource: replace(known, items=items)})
    return state


def demo(*, running: bool = True) -> ClusterState:
    """Set demo of namespace ns, on eight empty nodes in four racks."""
    return with_workload(shaped("1x2x2x2", 8, "local"), a_simulator(running=running))


def a_pod(namespace: str, name: str, node: str, gpus: int, gang: str = "", **status: Any) -> dict[str, Any]:
    """A pod that runs on a node, or is nominated for it."""
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "grove.io/podgang": gang} if gang else {}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "main", "resources": resources}], "nodeName": node},
        "status": {"phase": "Running", **status},
    }


def with_pods(state: ClusterState, *pods: dict[str, Any]) -> ClusterState:
    return with_objects(state, PODS, *pods)


def failing_pod(namespace: str, set_name: str, suffix: str = "failing") -> dict[str, Any]:
    """A pod of clique router whose image cannot be pulled."""
    clique = f"{set_name}-0-router"
    labels = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": set_name,
        "grove.io/podclique": clique,
        "grove.io/podgang": f"{set_name}-0",
    }
    waiting = {"reason": "ImagePullBackOff", "message": "no such\nimage"}
    return {
        "metadata": {"name": f"{clique}-{suffix}", "namespace": namespace, "labels": labels},
        "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}],
        },
    }
