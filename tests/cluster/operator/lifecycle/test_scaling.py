"""Scaling: counts that are refused, and objects of scaled-in replicas while a pod still terminates."""

from __future__ import annotations

import pytest

from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.kube.errors import Invalid
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import clique, small, workload


async def test_scale_between_zero_and_minimum_is_refused(world: World) -> None:
    async with operating(world):
        await world.create(SETS, workload("firm", clique("worker", 3, 2)))
        await world.until_ready()
        with pytest.raises(Invalid):
            await world.scale(CLIQUES, "firm-0-worker", 1)
    assert len(world.pods()) == 3


async def test_scale_in_deletes_cliques_before_last_pod_is_gone(world: World) -> None:
    """Upstream's tests of scale in check cliques and gangs as soon as the number of pods is right."""
    async with operating(world):
        await world.create(SETS, small(replicas=2))
        await world.until_ready()
        held = next(pod for pod in world.pods() if "small-1-" in pod.name)
        await world.patch(PODS, held.name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.scale(SETS, "small", 1)
        for resource in (GANGS, CLIQUES, GROUPS):
            await world.until(
                lambda resource=resource: not any("small-1" in name for name in world.names(resource)),
                f"no {resource.plural} of the scaled-in replica",
            )
        assert [pod.name for pod in world.all(PODS) if "small-1-" in pod.name].count(held.name) == 1
        await world.patch(PODS, held.name, {"metadata": {"finalizers": None}})
        await world.until_ready()
        assert len(world.all(PODS)) == 5


async def test_large_scale_in_leaves_no_clique_behind_its_pods(world: World) -> None:
    """The server is asked in the moment in which the last pod is gone."""
    async with operating(world):
        await world.create(SETS, workload("wide", clique("worker", 1), replicas=140))
        await world.until_ready()
        await world.scale(SETS, "wide", 0)
        await world.until(lambda: not world.all(PODS), "no pods")
        for resource in (CLIQUES, GANGS):
            left = await world.client.list(resource, as_type=Object, namespace=world.namespace)
            assert [found.metadata.name for found in left.items] == []
