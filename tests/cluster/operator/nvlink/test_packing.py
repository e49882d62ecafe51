"""NVLink domains in one partition: by the placement of the operator, and by pod affinity where the scheduler
alone chooses the nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from grove.schedulers.registry import backends
from tests.chart import Account
from tests.cluster.operator.nvlink.test_channels import choose, on_chosen_nodes
from tests.cluster.operator.scheduling.test_placement_devices import PATIENT
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import NVIDIA
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, gated

PARTITION = "nvidia.com/gpu.clique"
OFF = backends(Scheduler((SchedulerProfile("default-scheduler", {"placement": "Off"}),)))


@asynccontextmanager
async def partitions(world: World, nodes: list[str], values: str) -> AsyncIterator[dict[str, str]]:
    """Nodes of these partitions, which the pods select; they get their own labels back."""

    async def label(node: str, value: str | None) -> None:
        await world.client.patch(NODES, node, {"metadata": {"labels": {PARTITION: value}}}, as_type=Object)

    found = (await world.client.list(NODES, as_type=Object)).items
    before = {node.metadata.name: node.metadata.labels.get(PARTITION) for node in found}
    chosen = dict(zip(nodes, values, strict=False))
    try:
        for node, value in chosen.items():
            await label(node, value)
            await choose(world, node)
        yield chosen
    finally:
        for node in chosen:
            await label(node, before[node])
            await choose(world, node, chosen=False)


def packed(name: str, pods: int, value: str = "required") -> dict[str, Any]:
    body = on_chosen_nodes(name, pods)
    body["metadata"]["annotations"]["grove.io/pack-domains"] = value
    return body


def placed(world: World, name: str, chosen: dict[str, str]) -> list[str]:
    """The partitions of the nodes of a set's pods."""
    nodes = (pod.spec.get("nodeName") for pod in world.pods(part_of=name))
    return sorted(chosen[node] for node in nodes if node)


async def test_domain_is_placed_in_one_partition_or_waits(
    world: World, agents: list[str], placing_account: Account
) -> None:
    """Partitions a, of one node, and b, of two. By default a domain that is too large is split; a required
    one waits whole, with the figures."""
    world.config = placing_account.config
    async with (
        partitions(world, agents, "abb") as chosen,
        operating(world, fabrics=NVIDIA, backends=PATIENT),
    ):
        await world.create(SETS, packed("two", 2))
        await world.until(lambda: placed(world, "two", chosen) == ["b", "b"], "one partition")
        assert {pod.spec["nodeSelector"][PARTITION] for pod in world.pods(part_of="two")} == {"b"}
        await world.delete(SETS, "two")
        await world.until(lambda: not world.find(SETS, "two"), "the set deleted")
        await world.create(SETS, packed("three", 3))
        reason = "needs 3 pods, 2 would fit if it were empty"
        await world.until(lambda: reason in fabric.scheduled_condition(world, "three-0")[1], "why it waits")
        assert f"{PARTITION} b" in fabric.scheduled_condition(world, "three-0")[1]
        assert list(map(gated, world.pods(part_of="three"))) == [True] * 3
        change = {"metadata": {"annotations": {"grove.io/pack-domains": "preferred"}}}
        await world.patch(SETS, "three", change)
        await world.until(lambda: placed(world, "three", chosen) == ["a", "b", "b"], "split")


async def test_default_domain_prefers_one_partition(
    world: World, agents: list[str], placing_account: Account
) -> None:
    """Another set of the same domain follows it, until there is no room."""
    world.config = placing_account.config

    def sharing(name: str) -> dict[str, Any]:
        body = packed(name, 1)
        del body["metadata"]["annotations"]
        notes = {"nvidia.com/computedomain": "team"}
        body["spec"]["template"]["cliques"][0]["annotations"] = notes
        return body

    async with (
        partitions(world, agents, "baab") as chosen,
        operating(world, fabrics=NVIDIA, backends=PATIENT),
    ):
        await world.create(SETS, sharing("first"))
        await world.until(lambda: len(placed(world, "first", chosen)) == 1, "the first")
        await world.create(SETS, sharing("second"))
        await world.until(lambda: len(placed(world, "second", chosen)) == 1, "the second")
        assert placed(world, "first", chosen) == placed(world, "second", chosen)
        await world.create(SETS, sharing("third"))
        await world.until(lambda: len(placed(world, "third", chosen)) == 1, "the third")
        assert placed(world, "third", chosen) != placed(world, "first", chosen)


async def test_affinity_keeps_a_domain_in_one_partition(world: World, agents: list[str]) -> None:
    """Kube-scheduler places the first pod anywhere, and the others beside it: not all find a node."""
    async with (
        partitions(world, agents, "aabbb") as chosen,
        operating(world, fabrics=NVIDIA, backends=OFF),
    ):
        await world.create(SETS, packed("app", 4))

        def waiting() -> int:
            return sum(pod.condition("PodScheduled") == "False" for pod in world.pods(part_of="app"))

        await world.until(lambda: waiting() + len(placed(world, "app", chosen)) == 4, "all tried")
        found = placed(world, "app", chosen)
        assert found in (["a", "a"], ["b", "b", "b"])
