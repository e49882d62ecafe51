"""Gangs of different NVLink domains that the operator places: a node has one channel, so they exclude each
other's nodes."""

from __future__ import annotations

from tests.chart import Account
from tests.cluster.operator.nvlink.test_channels import choose, on_chosen_nodes
from tests.cluster.operator.scheduling.test_placement_devices import PATIENT
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import NVIDIA
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, gated


def nodes_of(world: World, name: str) -> set[str]:
    return {node for pod in world.pods(part_of=name) if (node := pod.spec.get("nodeName"))}


async def test_gang_waits_whole_for_channels_of_another_domain(
    world: World, agents: list[str], placing_account: Account
) -> None:
    """Three nodes have enough of everything else for both gangs."""
    world.config = placing_account.config
    for node in agents[:3]:
        await choose(world, node)
    try:
        async with operating(world, fabrics=NVIDIA, backends=PATIENT):
            await world.create(SETS, on_chosen_nodes("first", 2))
            await world.until(lambda: len(nodes_of(world, "first")) == 2, "the first gang")
            await world.create(SETS, on_chosen_nodes("second", 2))
            reason = "needs 2 devices of class compute-domain-default-channel.nvidia.com, 1 free"
            await world.until(lambda: reason in fabric.scheduled_condition(world, "second-0")[1], "why")
            assert list(map(gated, world.pods(part_of="second"))) == [True, True]
            await world.delete(SETS, "first")
            await world.until(lambda: len(nodes_of(world, "second")) == 2, "the second gang")
    finally:
        for node in agents[:3]:
            await choose(world, node, chosen=False)
