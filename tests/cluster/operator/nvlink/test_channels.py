"""A node has one channel, and some have none: who waits for one, who has it, and what is told of nodes."""

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

from grove.kube.auth import config
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, RESOURCE_SLICES
from grove.kube.testing.faults import FaultRates
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.objects import DRIVER
from tests.chart import Account
from tests.cluster.operator.nvlink.domain_status import events, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import NVIDIA, automatic, small
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import admitting, eventually

BUSY = "ImexChannelBusy"
CHOSEN = "grove.test/chosen"


def pinned(name: str, node: str) -> dict[str, Any]:
    """A set with one pod, on this node."""
    body = automatic(name, small("worker"))
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"].update(here)
    return body


def counted(channel: str) -> float | None:
    """Nodes with GPUs that have a channel, or have none, as the metrics tell."""
    return REGISTRY.get_sample_value("grove_fabric_nodes", {"vendor": "nvidia", "channel": channel})


async def published(world: World, nodes: int) -> None:
    """Wait until as many nodes publish a channel: this is not about what the stand-in does."""

    async def so_many() -> bool:
        slices = (await world.client.list(RESOURCE_SLICES, as_type=Object)).items
        return sum(each.metadata.name.endswith(DRIVER) for each in slices) == nodes

    await eventually(so_many)


async def choose(world: World, node: str, *, chosen: bool = True) -> None:
    """Let the pods of these tests be on a node, or not any more."""
    body = {"metadata": {"labels": {CHOSEN: "true" if chosen else None}}}
    await world.client.patch(NODES, node, body, as_type=Object)


@asynccontextmanager
async def scarce(world: World, nodes: list[str]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Two nodes have a channel, until a third one is asked for. Only these are chosen for pods: a scheduler
    that has not heard yet that the others have lost theirs could take one of them."""

    async def another() -> None:
        await fabric.channel(world.client, nodes[2], there=True)
        await choose(world, nodes[2])

    async with fabric.without_channels(world.client, nodes[2:]):
        await published(world, 2)
        try:
            for node in nodes[:2]:
                await choose(world, node)
            yield another
        finally:
            for node in nodes[:3]:
                await choose(world, node, chosen=False)
    await published(world, len(nodes))


def picky(name: str, pods: int = 1) -> dict[str, Any]:
    """A set whose pods want the chosen nodes."""
    body = automatic(name, small("worker", pods))
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {CHOSEN: "true"}
    return body


@pytest.mark.parametrize("looking", [False, True], ids=["by domains", "by nodes too"])
async def test_b4_who_waits_for_a_channel_is_told_who_has_it(
    world: World, agents: list[str], automatic_account: Account, looking: bool
) -> None:
    """Only the channel is missing: there is room for a GPU more. Where the operator may look at nodes, it
    believes their labels too."""
    if looking:
        world.config = automatic_account.config
    with fabric.impatient():
        async with operating(world, fabrics=NVIDIA, auto_fabric=looking):
            await world.create(SETS, pinned("first", agents[0]))
            await world.until_ready()
            await world.create(SETS, pinned("second", agents[0]))
            words = (
                "1 pod of ComputeDomain second-0 found no node for 1 s, and a node has one channel: "
                f"ComputeDomain {world.namespace}/first-0 of PodCliqueSet first holds {agents[0]}"
            )
            await world.until(lambda: (BUSY, words) in events(world, "second"), "the event")
            await world.until(lambda: words in fabric.about_domains(world, "second"), "the condition")
            assert reason(world, "second") == "WaitingForPods"
            await world.until(
                lambda: fabric.scheduled(world, "second-0")[0] == "PodGroupsNotScheduled", "the gang waits"
            )
            assert BUSY not in reasons(world, "first")
            await world.delete(SETS, "first")
            await world.until(lambda: not world.find(SETS, "first"), "it gives its channel back")
            await world.until_ready()
            await world.until(lambda: "holds" not in fabric.about_domains(world, "second"), "all is well")
            assert reasons(world, "second").count(BUSY) == 1


async def test_b8_a_gang_that_needs_more_channels_than_there_are_says_so_until_there_are(
    world: World, agents: list[str]
) -> None:
    cramped = (
        "OneMemberPodPerNode",
        "3 pods that are in fabric domains need a node each, and 2 nodes have a channel: use fewer pods with "
        "more accelerators each, or add nodes",
    )
    async with scarce(world, agents) as another, operating(world, fabrics=NVIDIA):
        await world.create(SETS, picky("app", 3))
        await world.until(lambda: fabric.scheduled(world, "app-0") == cramped, "why it cannot fit")
        await world.until(
            lambda: sum("nodeName" in pod.spec for pod in world.pods()) == 2, "who could be placed is"
        )
        await another()
        await world.until_ready()
        assert fabric.scheduled(world, "app-0")[0] == "AllPodGroupsScheduled"
        nodes = {pod.spec["nodeName"] for pod in world.pods()}
        assert nodes == set(agents[:3]), "one enrolled pod per node"
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(fabric.DOMAINS), "all gone")


@asynccontextmanager
async def everything(world: World) -> AsyncIterator[None]:
    """Events and writes meet faults by chance."""
    rates = FaultRates(
        conflict=0.05, throttle=0.05, error=0.05, lose=0.05, delay=0.2, drop=0.01, cut=0.02, reorder=0.1
    )
    async with operating(world, fabrics=NVIDIA, rates=rates, seed=11):
        yield


@asynccontextmanager
async def short_lives(world: World) -> AsyncIterator[None]:
    """Operators end after every few writes, and the next one begins with what it finds."""
    async with successive_operators(world, itertools.cycle([2, 5, 3, 9]), fabrics=NVIDIA):
        yield


@asynccontextmanager
async def two_leaders(world: World) -> AsyncIterator[None]:
    """Neither knows of the other, and one sees everything late."""
    late = FaultRates(delay=0.5, reorder=0.3, duplicate=0.2, longest_delay=0.3)
    async with operating(world, fabrics=NVIDIA), operating(world, fabrics=NVIDIA, rates=late, seed=12):
        yield


@pytest.mark.parametrize("weather", [everything, short_lives, two_leaders])
async def test_b4_and_b8_what_is_said_of_channels_is_true_in_any_weather(
    world: World, agents: list[str], weather: Callable[[World], AbstractAsyncContextManager[None]]
) -> None:
    with fabric.impatient():
        async with scarce(world, agents) as another, weather(world):
            await world.create(SETS, picky("app", 3))
            await world.until(
                lambda: fabric.scheduled(world, "app-0")[0] == "OneMemberPodPerNode", "it cannot fit"
            )
            await another()
            await world.until_ready()
            await world.create(SETS, picky("next"))
            held = f"{world.namespace}/app-0 of PodCliqueSet app holds {', '.join(agents[:3])}"
            await world.until(lambda: held in fabric.about_domains(world, "next"), "who has the channels")
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app"), "it gives its channels back")
            await world.until(
                lambda: world.whole() and "holds" not in fabric.about_domains(world, "next"), "all is well"
            )
            await world.delete(SETS, "next")
            await world.until(lambda: not world.all(SETS) and not world.all(fabric.DOMAINS), "all gone")


async def until_said(heard: list[Mapping[str, Any]], sought: Callable[[Mapping[str, Any]], bool]) -> None:
    async def said() -> bool:
        return any(entry.get("event") == "nodes checked for channels" and sought(entry) for entry in heard)

    await eventually(said)


async def until_counted(**nodes: int) -> None:
    """Nobody tells that a metric has changed."""

    async def so_many() -> bool:
        return all(counted(channel) == count for channel, count in nodes.items())

    await eventually(so_many)


async def test_b7_nodes_without_a_channel_are_told_of_in_log_and_metrics(
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


async def test_b7_and_b8_whoever_makes_a_set_is_warned_of_its_nodes(
    world: World, agents: list[str], cluster: LocalCluster
) -> None:
    """By the API server, which asks the webhooks: that some nodes have no channel, and that pods which ask
    for few GPUs take a node each all the same."""
    lonely = (
        "spec.template.cliques[0]: a node has one channel, so these 2 pods take as many nodes, with 1 of at "
        "least 8 accelerators each"
    )
    missing = f"1 of {len(agents)} nodes with accelerators of nvidia have no channel and cannot be in a"
    few, one = automatic("app", small("worker", 2)), automatic("app", small("worker"))
    opted_out = {**one, "metadata": {"name": "app", "annotations": {"grove.io/auto-mnnvl": "disabled"}}}

    async def warned(body: dict[str, Any], words: str) -> bool:
        """Whether whoever makes this set is warned in these words; without words, of nothing."""
        path = f"{SETS.path(world.namespace)}?dryRun=All"
        reply = await world.client.raw("POST", path, msgspec.json.encode(body))
        said = reply.headers.get("Warning", "")
        return words in said if words else not said

    connection, network = config.load(cluster.kubeconfig), {"autoMNNVLEnabled": True}
    async with admitting(world.client, connection, world.namespace, network=network, fabrics=NVIDIA):
        await eventually(partial(warned, few, lonely))  # as soon as the webhooks have seen the nodes
        assert await warned(one, "")
        assert await warned(automatic("app", fabric.gpus("worker", 2)), "")
        async with fabric.without_channels(world.client, agents[:1]):
            await eventually(partial(warned, one, missing))
            assert await warned(opted_out, ""), "whoever is in no domain does not care"
        await eventually(partial(warned, one, ""))
