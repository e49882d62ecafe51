"""`grove topology`: shows the domains of a cluster as a tree, with their free and used GPUs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from grove import timing
from grove.cli import options
from grove.cli.commands.inspection.cluster_input import ClusterInput, report_unread
from grove.cli.views.topology.screen import Screen, open_screen
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.views.topology.topologies import read_trees

if TYPE_CHECKING:
    from grove.views.topology.cluster_use import ClusterUse


def topology(
    *,
    topology: Annotated[str | None, Parameter(help="Name of a ClusterTopology; default: all.")] = None,
    nodes: Annotated[bool, Parameter(negative=(), help="Show every node.")] = False,
    watch: options.WatchOption = False,
    output: options.OutputOption = "table",
    snapshot: options.SnapshotOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show the domains of the cluster as a tree, with free GPUs, GPUs of PodCliqueSets and those of others.

    It lists nodes that are tainted, cordoned or not ready, NVLink partitions, and how many jobs of 1, 8, 16,
    32 and 64 GPUs still fit into one domain of each level.
    """
    if watch and snapshot is not None:
        raise ConfigError("--watch and --snapshot exclude each other: a snapshot does not change")
    source = ClusterInput(snapshot, kubeconfig, context)
    with open_screen(output, nodes=nodes, live=watch) as screen:
        asyncio.run(_show(source, topology, screen, watch))
    return 0


def _prepare() -> ClusterUse:
    from grove.views.topology.cluster_use import ClusterUse

    return ClusterUse()


async def _show(source: ClusterInput, topology: str | None, screen: Screen, watch: bool) -> None:
    if source.snapshot is None:
        async with Client(source.connection()) as client:
            screen.begin(await read_trees(client, topology))
    use, state = await source.read(_prepare)
    state = use.load(state)
    screen.show(use.trees(topology))
    report_unread(state)
    if watch:
        await _watch(_prepare(), topology, screen, source)


async def _watch(use: ClusterUse, topology: str | None, screen: Screen, source: ClusterInput) -> None:
    """Show the trees after each change, at most one in a while, until interrupted."""
    changed = asyncio.Event()
    async with Client(source.connection()) as client, use.watched(client, changed.set):
        while True:
            await changed.wait()
            await asyncio.sleep(timing.SCREEN_INTERVAL)
            changed.clear()
            if use.ready:
                screen.show(use.trees(topology))
