"""The shape of a cluster: how zones, blocks, racks, hosts and NVLink cliques nest. Pure.

A shape is written outermost first, `2x2x4x8`: 2 zones of 2 blocks of 4 racks of 8 hosts. Missing numbers
at the front are 1, so `4x8` is 4 racks of 8 hosts. A fifth number splits each
rack into that many NVLink cliques; without it a rack is one clique, as in an NVL72.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from grove import timing
from grove.api.naming.external_keys import NVIDIA_GPU, NVIDIA_GPU_CLIQUE
from grove.local.errors import LocalError

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
BLOCK = "topology.kubernetes.io/block"
RACK = "topology.kubernetes.io/rack"
HOST = "kubernetes.io/hostname"

_HOSTS_PER_RACK = 8
_MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """How many of each level there are in the next larger one."""

    zones: int
    blocks: int
    racks: int
    hosts: int
    cliques: int = 1

    @property
    def size(self) -> int:
        """The total number of hosts."""
        return self.zones * self.blocks * self.racks * self.hosts

    def __str__(self) -> str:
        levels = (self.zones, self.blocks, self.racks, self.hosts)
        return "x".join(map(str, levels if self.cliques == 1 else (*levels, self.cliques)))


def parse_shape(text: str) -> ClusterShape:
    """Parse `2x2x4x8`, or fewer numbers, or a fifth one for the NVLink cliques of a rack."""
    words = text.lower().split("x")
    if len(text) > timing.QUOTED_VALUE:
        raise LocalError(f"--shape of {len(text)} characters: at most {_MAX_NODES} nodes are supported")
    if not 1 <= len(words) <= 5 or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise LocalError(
            f"--shape {text!r}: write zones x blocks x racks x hosts as numbers, for example 2x2x4x8"
        )
    numbers = [int(word) for word in words]
    cliques = numbers.pop() if len(numbers) == 5 else 1
    zones, blocks, racks, hosts = [1] * (4 - len(numbers)) + numbers
    shape = ClusterShape(zones, blocks, racks, hosts, cliques)
    if shape.cliques > shape.hosts:
        raise LocalError(
            f"--shape {text!r}: {shape.cliques} NVLink cliques need at least as many hosts in a rack"
        )
    if shape.size > _MAX_NODES:
        raise LocalError(f"--shape {text!r} is {shape.size} nodes: at most {_MAX_NODES} are supported")
    return shape


def shape_for(nodes: int) -> ClusterShape:
    """The default shape for a number of nodes: one zone and one block of full racks, except the last one."""
    if not 0 <= nodes <= _MAX_NODES:
        raise LocalError(f"--nodes {nodes}: choose between 0 and {_MAX_NODES}")
    return ClusterShape(1, 1, max(1, -(-nodes // _HOSTS_PER_RACK)), _HOSTS_PER_RACK)


def node_manifests(shape: ClusterShape, count: int, gpus: int) -> Iterator[dict[str, Any]]:
    """The first `count` nodes of the shape, filling one rack before the next."""
    places = product(range(shape.zones), range(shape.blocks), range(shape.racks), range(shape.hosts))
    for zone, block, rack, host in islice(places, count):
        clique = host * shape.cliques // shape.hosts
        yield _node(f"z{zone}", f"z{zone}-b{block}", f"z{zone}-b{block}-r{rack}", host, clique, gpus)


def _node(zone: str, block: str, rack: str, host: int, clique: int, gpus: int) -> dict[str, Any]:
    name = f"{rack}-h{host}"
    labels = {
        HOST: name,
        "kubernetes.io/arch": "arm64" if gpus else "amd64",
        "kubernetes.io/os": "linux",
        "type": "kwok",
        REGION: "local",
        ZONE: zone,
        BLOCK: block,
        RACK: rack,
    }
    resources = {"cpu": "144", "memory": "960Gi", "ephemeral-storage": "3Ti", "pods": "250"}
    if gpus:
        # The clique label has the format of NVIDIA's GPU feature discovery: cluster UUID and partition.
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.product": "NVIDIA-GB200",
            NVIDIA_GPU_CLIQUE: f"{uuid5(NAMESPACE_DNS, rack)}.{clique}",
        }
        resources[NVIDIA_GPU] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": resources, "capacity": resources, "phase": "Running"},
    }
