"""What upstream's operator made is taken over as it is: nothing rolls, nothing hangs on its finalizers."""

from __future__ import annotations

from typing import Any

from grove.api.naming import labels
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import small

THEIR_HASH = "6f8b94c7d5f4b9cd58"
_FINALIZERS = {CLIQUES: "grove.io/podclique.grove.io", GROUPS: "grove.io/podcliquescalinggroup.grove.io"}


async def as_upstream_makes_them(world: World) -> None:
    """Its finalizers and hashes, without the labels that are ours alone."""
    for kind in (GROUPS, CLIQUES, GANGS, PODS):
        without = labels.SET_REPLICA if kind is GANGS else labels.CLIQUE_TEMPLATE
        metadata: dict[str, Any] = {"labels": {without: None}}
        if kind in (CLIQUES, PODS):
            metadata["labels"][labels.TEMPLATE_HASH] = THEIR_HASH
        if finalizer := _FINALIZERS.get(kind):
            metadata["finalizers"] = [finalizer]
        for found in world.all(kind):
            await world.patch(kind, found.name, {"metadata": metadata})


async def made_by_upstream(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    before = {pod.uid for pod in world.pods()}
    await world.parent_goes()
    await world.delete(SETS, "small", propagation="Orphan")
    await world.until(lambda: not world.all(SETS), "the set gone")
    await as_upstream_makes_them(world)
    await world.create(SETS, small())
    await world.rest("taken over", 5)
    assert {pod.uid for pod in world.pods()} == before
    await world.scale(GROUPS, "small-0-model", 3)
    await world.rest("scaled out", 7)
    assert before <= {pod.uid for pod in world.pods()}
    await world.delete(SETS, "small")
    await world.rest("gone", 0)


SCENARIOS = {"made by upstream": made_by_upstream}
