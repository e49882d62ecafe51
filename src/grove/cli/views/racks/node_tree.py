"""The nodes of a cluster as a tree of zones, blocks and racks, for `grove demo`."""

from __future__ import annotations

from rich.tree import Tree

from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.api.types.kubernetes_objects import Node
from grove.cli.views.racks.rack_view import racks
from grove.local.cluster.nodes import gpus_of, is_ready


def topology_tree(nodes: list[Node]) -> Tree:
    """A tree of zones, blocks and racks, with the GPUs and NVLink cliques of each rack."""
    gpus = sum(map(gpus_of, nodes))
    root = Tree(f"[bold]{len(nodes)} nodes, {gpus} GPUs")
    branches: dict[tuple[str, ...], Tree] = {(): root}
    for place, members in racks(nodes).items():
        for depth, level in enumerate(("zone", "block")):
            path = place[: depth + 1]
            if path not in branches:
                branches[path] = branches[path[:-1]].add(f"{level} [bold]{path[-1] or '?'}")
        branches[place[:2]].add(_rack(place[2], members))
    return root


def _rack(name: str, nodes: list[Node]) -> str:
    cliques = {clique for node in nodes if (clique := node.metadata.labels.get(NVIDIA_GPU_CLIQUE))}
    ready = sum(map(is_ready, nodes))
    fabric = f", {len(cliques)} NVLink clique{'s' if len(cliques) > 1 else ''}" if cliques else ""
    gpus = sum(map(gpus_of, nodes))
    return f"rack [bold]{name or '?'}[/]  {ready}/{len(nodes)} ready, {gpus} GPUs{fabric}"
