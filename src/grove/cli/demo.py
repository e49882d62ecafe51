"""`grove demo`: what this is, shown rather than told."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.tree import Tree

from grove.api.cluster import Node
from grove.api.foreign import NVIDIA_GPU_CLIQUE
from grove.cli.cluster import StateOption, program, start, state_of
from grove.local.nodes import gpus_of, is_ready, read_nodes
from grove.local.shape import BLOCK, RACK, ZONE

_DEMO_SHAPE = "1x2x2x4"


def demo(*, state_dir: StateOption = None) -> int:
    """Bring up a cluster of GPU nodes and show its topology."""
    state = state_of(state_dir)
    cluster = start(state, {} if state.read() else {"shape": _DEMO_SHAPE})
    console = Console()
    nodes = asyncio.run(read_nodes(cluster.kubeconfig))
    console.print()
    console.print(topology(nodes))
    grove = program()
    console.print("\nwhat to try next:", highlight=False)
    for command in (f"{grove} cluster status", f"{grove} kubectl get nodes -L {RACK}", "make down"):
        console.print(f"  {command}", highlight=False, soft_wrap=True)
    return 0


def topology(nodes: list[Node]) -> Tree:
    """Zones, blocks and racks as a tree, with the GPUs and NVLink cliques of each rack."""
    gpus = sum(map(gpus_of, nodes))
    root = Tree(f"[bold]{len(nodes)} nodes, {gpus} GPUs")
    branches: dict[tuple[str, ...], Tree] = {(): root}
    racks: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        labels = node.metadata.labels
        racks.setdefault((labels.get(ZONE, ""), labels.get(BLOCK, ""), labels.get(RACK, "")), []).append(node)
    for place, members in sorted(racks.items()):
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
