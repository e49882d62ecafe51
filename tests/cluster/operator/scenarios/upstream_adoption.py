"""Take-over of objects that upstream's operator created: no pod is restarted, and its finalizers do not block
deletion."""

from __future__ import annotations

from typing import Any

from grove.api.naming import labels
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import small

UPSTREAM_HASH = "6f8b94c7d5f4b9cd58"
_FINALIZERS = {CLIQUES: "grove.io/podclique.grove.io", GROUPS: "grove.io/podcliquescalinggroup.grove.io"}


async def make_like_upstream(world: World) -> None:
    """Give all objects upstream's finalizers and hashes; remove the labels that only this operator sets."""
    for kind in (GROUPS, CLIQUES, GANGS, PODS):
        without = labels.SET_REPLICA if kind is GANGS else labels.CLIQUE_TEMPLATE
        metadata: dict[str, Any] = {"labels": {without: None}}
        if kind in (CLIQUES, PODS):
            metadata["labels"][labels.TEMPLATE_HASH] = UPSTREAM_HASH
        if finalizer := _FINALIZERS.get(kind):
            metadata["finalizers"] = [finalizer]
        for found in world.all(kind):
            await world.patch(kind, found.name, {"metadata": metadata})


async def take_over_from_upstream(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    before = {pod.uid for pod in world.pods()}
    await world.stop_comparing_deletes()
    await world.delete(SETS, "small", propagation="Orphan")
    await world.until(lambda: not world.all(SETS), "the set deleted")
    await make_like_upstream(world)
    await world.create(SETS, small())
    await world.checkpoint("taken over", 5)
    assert {pod.uid for pod in world.pods()} == before
    await world.scale(GROUPS, "small-0-model", 3)
    await world.checkpoint("scaled out", 7)
    assert before <= {pod.uid for pod in world.pods()}
    await world.delete(SETS, "small")
    await world.checkpoint("deleted", 0)


SCENARIOS = {"take-over from upstream": take_over_from_upstream}
