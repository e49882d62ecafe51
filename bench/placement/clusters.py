"""Random clusters: zones of blocks of racks, nodes of 8 GPUs, three resources, some taints, 70 % filled."""

from __future__ import annotations

from random import Random

from grove.topology.placement.model import Node, NodeUse, PodShape, Taint, Toleration

LEVELS = ("zone", "block", "rack")
GPU = "nvidia.com/gpu"
GIB = 1 << 30
RACK, BLOCK, ZONE = 16, 128, 1024
"""Nodes of each domain."""
FILLED, TAINTED = 0.7, 0.1
ALLOCATABLE = {"cpu": 128_000, "memory": 1024 * GIB, GPU: 8, "pods": 110}
TAINT = Taint("dedicated", "inference")
TOLERATED = (Toleration("dedicated", "Exists"),)


def requests(gpus: int, cpu: int, memory: int) -> dict[str, int]:
    return {"cpu": cpu * 1000, "memory": memory * GIB, GPU: gpus, "pods": 1}


SHAPES = {
    "router": PodShape(requests(0, 4, 16)),
    "small": PodShape(requests(1, 12, 96), tolerations=TOLERATED),
    "medium": PodShape(requests(4, 48, 400)),
    "large": PodShape(requests(8, 96, 800), tolerations=TOLERATED),
}


def nodes(count: int, random: Random) -> list[Node]:
    found = []
    for i in range(count):
        labels = {"zone": f"z{i // ZONE}", "block": f"b{i // BLOCK}", "rack": f"r{i // RACK}"}
        taints = (TAINT,) if random.random() < TAINTED else ()
        found.append(Node(f"n{i:05}", labels, ALLOCATABLE, taints))
    return found


def fill(each: list[Node], random: Random) -> dict[str, NodeUse]:
    """Pods of random shapes, until each node has its random share of the load."""
    return {node.name: NodeUse({0: used}) for node in each if (used := _pods(random))}


def _pods(random: Random) -> dict[str, int]:
    """The requests of pods on one node. The share of GPUs in use is 70 % in the mean."""
    target = min(8, round(random.betavariate(0.7, 0.3) * 8))
    used = {"cpu": 2000, "memory": 8 * GIB, GPU: 0, "pods": 5}
    while used[GPU] < target:
        shape = random.choice([s for s in SHAPES.values() if s.requests[GPU] <= target - used[GPU]])
        wanted = {name: used[name] + amount for name, amount in shape.requests.items()}
        if any(wanted[name] > ALLOCATABLE[name] for name in wanted):
            break
        used = wanted
    return used
