"""Channels: a node has one or none. Sets report when their pods wait for a channel and which domain holds it;
nodes without a channel are reported in log, metrics and admission warnings."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from grove.api.types.clustertopology import ClusterTopology
from grove.kube.auth import config
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, RESOURCE_SLICES
from grove.kube.testing.faults import FaultRates
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.objects import DRIVER
from grove.operator.caches.resources import resource_of
from tests.chart import Account
from tests.cluster.operator.nvlink.domain_status import events, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import NVIDIA, automatic, small
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.webhooks.harness import admitting, eventually

BUSY = "ImexChannelBusy"
CHOSEN = "grove.test/chosen"
TOPOLOGIES = resource_of(ClusterTopology.KIND)
KIND = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind}


def pinned(name: str, node: str) -> dict[str, Any]:
    """A set with one pod that selects this node."""
    body = automatic(name, small("worker"))
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"].update(here)
    return body


def counted(channel: str) -> float | None:
    """The metric that counts nodes with GPUs, with a channel ("yes") or without ("no")."""
    return REGISTRY.get_sample_value("grove_fabric_nodes", {"vendor": "nvidia", "channel": channel})


async def published(world: World, nodes: int) -> None:
    """Wait until the stand-in has published the channels of so many nodes."""

    async def enough() -> bool:
        slices = (await world.client.list(RESOURCE_SLICES, as_type=Object)).items
        return sum(each.metadata.name.endswith(DRIVER) for each in slices) == nodes

    await eventually(enough)


async def choose(world: World, node: str, *, chosen: bool = True) -> None:
    """Set or remove the node label that the pods of these tests select."""
    body = {"metadata": {"labels": {CHOSEN: "true" if chosen else None}}}
    await world.client.patch(NODES, node, body, as_type=Object)


@asynccontextmanager
async def two_channels(world: World, nodes: list[str]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Two nodes have a channel; the yielded function adds a third. Only these get the label that the pods
    select: a scheduler with an outdated cache could use another node, whose channel was just removed."""

    async def add_node() -> None:
        await fabric.channel(world.client, nodes[2], there=True)
        await choose(world, nodes[2])

    async with fabric.without_channels(world.client, nodes[2:]):
        await published(world, 2)
        try:
            for node in nodes[:2]:
                await choose(world, node)
            yield add_node
        finally:
            for node in nodes[:3]:
                await choose(world, node, chosen=False)
    await published(world, len(nodes))


def on_chosen_nodes(name: str, pods: int = 1) -> dict[str, Any]:
    """A set whose pods select the labelled nodes."""
    body = automatic(name, small("worker", pods))
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {CHOSEN: "true"}
    return body


@pytest.mark.parametrize("reads_nodes", [False, True], ids=["by domains", "by domains and nodes"])
async def test_b4_set_reports_which_domain_holds_its_channel(
    world: World, agents: list[str], automatic_account: Account, reads_nodes: bool
) -> None:
    """Only the channel is missing: the node has free GPUs. Where the operator may read nodes, it uses their
    labels too."""
    if reads_nodes:
        world.config = automatic_account.config
    with fabric.short_channel_wait():
        async with operating(world, fabrics=NVIDIA, auto_fabric=reads_nodes):
            await world.create(SETS, pinned("first", agents[0]))
            await world.until_ready()
            await world.create(SETS, pinned("second", agents[0]))
            words = (
                "1 pod of ComputeDomain second-0 found no node for 1 s, and a node has one channel: "
                f"ComputeDomain {world.namespace}/first-0 of PodCliqueSet first holds {agents[0]}"
            )
            await world.until(lambda: (BUSY, words) in events(world, "second"), "the event")
            await world.until(lambda: words in fabric.domains_message(world, "second"), "the condition")
            assert reason(world, "second") == BUSY
            await world.until(
                lambda: fabric.scheduled_condition(world, "second-0")[0] == "PodGroupsNotScheduled",
                "the gang waits",
            )
            for kind, name in ((GANGS, "second-0"), (CLIQUES, "second-0-worker"), (SETS, "second")):
                await world.until(lambda kind=kind, name=name: world.get(kind, name).waits_for == BUSY, name)
            assert BUSY not in reasons(world, "first")
            await world.delete(SETS, "first")
            await world.until(lambda: not world.find(SETS, "first"), "the first set deleted")
            await world.until_ready()
            await world.until(
                lambda: "holds" not in fabric.domains_message(world, "second"), "no holder reported"
            )
            assert reasons(world, "second").count(BUSY) == 1


async def test_b8_gang_reports_lack_of_channels_until_resolved(world: World, agents: list[str]) -> None:
    too_few = (
        "OneMemberPodPerNode",
        "3 pods that are in fabric domains need a node each, and 2 nodes have a channel: use fewer pods with "
        "more accelerators each, or add nodes",
    )
    async with two_channels(world, agents) as add_node, operating(world, fabrics=NVIDIA):
        await world.create(SETS, on_chosen_nodes("app", 3))
        await world.until(lambda: fabric.scheduled_condition(world, "app-0") == too_few, "the condition")
        await world.until(
            lambda: sum("nodeName" in pod.spec for pod in world.pods()) == 2, "two pods on nodes"
        )
        await world.until(lambda: reason(world, "app") == too_few[0], "the condition of the set")
        assert fabric.domains_message(world, "app").startswith(too_few[1])
        await add_node()
        await world.until_ready()
        assert fabric.scheduled_condition(world, "app-0")[0] == "AllPodGroupsScheduled"
        nodes = {pod.spec["nodeName"] for pod in world.pods()}
        assert nodes == set(agents[:3]), "one pod of the domain per node"
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(fabric.DOMAINS), "all deleted")


@asynccontextmanager
async def all_faults(world: World) -> AsyncIterator[None]:
    """Watch events and writes meet random faults."""
    rates = FaultRates(
        conflict=0.05, throttle=0.05, error=0.05, lose=0.05, delay=0.2, drop=0.01, cut=0.02, reorder=0.1
    )
    async with operating(world, fabrics=NVIDIA, rates=rates, seed=11):
        yield


@asynccontextmanager
async def restarts(world: World) -> AsyncIterator[None]:
    """Operators stop after every few writes, and the next one continues."""
    async with successive_operators(world, itertools.cycle([2, 5, 3, 9]), fabrics=NVIDIA):
        yield


@asynccontextmanager
async def two_leaders(world: World) -> AsyncIterator[None]:
    """Two operators act as leaders without knowing of each other, and one sees all events late."""
    late = FaultRates(delay=0.5, reorder=0.3, duplicate=0.2, longest_delay=0.3)
    async with operating(world, fabrics=NVIDIA), operating(world, fabrics=NVIDIA, rates=late, seed=12):
        yield


@pytest.mark.parametrize("operators", [all_faults, restarts, two_leaders])
async def test_b4_b8_channels_are_reported_despite_faults(
    world: World, agents: list[str], operators: Callable[[World], AbstractAsyncContextManager[None]]
) -> None:
    with fabric.short_channel_wait():
        async with two_channels(world, agents) as add_node, operators(world):
            await world.create(SETS, on_chosen_nodes("app", 3))
            await world.until(
                lambda: fabric.scheduled_condition(world, "app-0")[0] == "OneMemberPodPerNode",
                "the condition",
            )
            await add_node()
            await world.until_ready()
            await world.create(SETS, on_chosen_nodes("next"))
            held = f"{world.namespace}/app-0 of PodCliqueSet app holds {', '.join(agents[:3])}"
            await world.until(lambda: held in fabric.domains_message(world, "next"), "the holder reported")
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app"), "the first set deleted")
            await world.until(
                lambda: world.all_ready() and "holds" not in fabric.domains_message(world, "next"),
                "no holder",
            )
            await world.delete(SETS, "next")
            await world.until(lambda: not world.all(SETS) and not world.all(fabric.DOMAINS), "all deleted")


async def until_said(heard: list[Mapping[str, Any]], sought: Callable[[Mapping[str, Any]], bool]) -> None:
    async def said() -> bool:
        return any(entry.get("event") == "nodes checked for channels" and sought(entry) for entry in heard)

    await eventually(said)


async def until_counted(**nodes: int) -> None:
    """Wait until the metric has these values; changes of metrics have to be polled."""

    async def is_counted() -> bool:
        return all(counted(channel) == count for channel, count in nodes.items())

    await eventually(is_counted)


async def test_b7_log_and_metrics_show_nodes_without_channel(
    world: World, agents: list[str], automatic_account: Account
) -> None:
    world.config, bare = automatic_account.config, agents[0]
    words = (
        f"1 of {len(agents)} nodes with accelerators of nvidia have no channel and cannot be in a "
        f"ComputeDomain: {bare}"
    )
    with capture_logs() as heard:
        async with operating(world, fabrics=NVIDIA, auto_fabric=True):
            await until_counted(yes=len(agents), no=0)
            async with fabric.without_channels(world.client, [bare]):
                await until_counted(yes=len(agents) - 1, no=1)
                await until_said(heard, lambda one: (one["log_level"], one["reason"]) == ("warning", words))
            await until_counted(yes=len(agents), no=0)
            alike = ("info", "all nodes with accelerators have a channel")
            await until_said(heard, lambda one: (one["log_level"], one["reason"]) == alike)


async def test_topology_and_fabric_share_one_watch_of_nodes(
    world: World, agents: list[str], aware_account: Account
) -> None:
    """Nodes are listed again for the keys of a topology, and the fabric goes on with the new list."""
    world.config = aware_account.config
    name, keys = f"levels-{world.namespace}", ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    levels = [{"domain": domain, "key": key} for domain, key in zip(("zone", "host"), keys, strict=True)]
    body = {**KIND, "metadata": {"name": name}, "spec": {"levels": levels}}

    async def nodes_reported() -> bool:
        found = await world.client.get(TOPOLOGIES, name, as_type=ClusterTopology)
        return (found.status.nodes or 0) >= len(agents)

    async with operating(world, topology_aware=True, fabrics=NVIDIA, auto_fabric=True) as operator:
        await until_counted(yes=len(agents), no=0)
        await world.client.create(TOPOLOGIES, body, as_type=Object)
        try:
            await eventually(nodes_reported)
        finally:
            await world.client.delete(TOPOLOGIES, name, as_type=Object)
        async with fabric.without_channels(world.client, [agents[0]]):
            await until_counted(yes=len(agents) - 1, no=1)
        assert operator.recorder.watches[NODES.label] == 1
        assert operator.recorder.most_watches[NODES.label] == 1


async def test_b7_b8_admission_warns_of_channels_and_whole_nodes(
    world: World, agents: list[str], cluster: LocalCluster
) -> None:
    """The API server returns the webhooks' warnings: that some nodes have no channel, and that pods with few
    GPUs nevertheless need a node each."""
    lonely = (
        "spec.template.cliques[0]: a node has one channel, so these 2 pods need 2 nodes and use 1 of at "
        "least 8 accelerators on each"
    )
    missing = f"1 of {len(agents)} nodes with accelerators of nvidia have no channel and cannot be in a"
    few, one = automatic("app", small("worker", 2)), automatic("app", small("worker"))
    opted_out = {**one, "metadata": {"name": "app", "annotations": {"grove.io/auto-mnnvl": "disabled"}}}

    async def warned(body: dict[str, Any], words: str) -> bool:
        """Whether the create of this set returns a warning with these words; without words, no warning."""
        path = f"{SETS.path(world.namespace)}?dryRun=All"
        reply = await world.client.raw("POST", path, msgspec.json.encode(body))
        warning = reply.headers.get("Warning", "")
        return words in warning if words else not warning

    connection, network = config.load(cluster.kubeconfig), {"autoMNNVLEnabled": True}
    async with admitting(world.client, connection, world.namespace, network=network, fabrics=NVIDIA):
        await eventually(partial(warned, few, lonely))  # once the webhooks have the nodes in their caches
        assert await warned(one, "")
        assert await warned(automatic("app", fabric.gpus("worker", 2)), "")
        async with fabric.without_channels(world.client, agents[:1]):
            await eventually(partial(warned, one, missing))
            assert await warned(opted_out, ""), "no warning for a set without domains"
        await eventually(partial(warned, one, ""))
