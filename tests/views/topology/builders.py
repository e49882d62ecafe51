"""Nodes of a small cluster: two zones, three racks, and a node without labels."""

from __future__ import annotations

from typing import Any

from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.views.topology.node_load import NodeLoad

LEVELS = (("zone", "z"), ("rack", "r"), ("host", "kubernetes.io/hostname"))


def a_node(name: str, place: str = "", **more: Any) -> NodeLoad:
    """A node of 8 GPUs; `place` is zone/rack."""
    labels = dict(zip(("z", "r"), place.split("/"), strict=False)) if place else {}
    if clique := more.pop("clique", ""):
        labels[NVIDIA_GPU_CLIQUE] = clique
    return NodeLoad(name, {**labels, "kubernetes.io/hostname": name}, more.pop("gpus", 8), **more)


CLUSTER = [
    a_node("a1", "z1/r1", ours=8, clique="c1"),
    a_node("a2", "z1/r1", ours=4, others=2, clique="c1"),
    a_node("a10", "z1/r1", cordoned=True, clique="c2"),
    a_node("b1", "z1/r2", others=8),
    a_node("b2", "z1/r2", taints=("maintenance",)),
    a_node("c1", "z2/r1", ready=False, others=1, clique="c3"),
    a_node("c2", "z2/r1", clique="c3"),
    a_node("login", gpus=0),
]
