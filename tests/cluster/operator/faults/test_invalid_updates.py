"""Invalid updates: at most one unit is unavailable, and the set ends up with its last valid spec."""

from __future__ import annotations

import asyncio

from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.api_errors import says
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS, is_ready
from tests.cluster.operator.support.updates import current, updated
from tests.cluster.operator.support.workloads import clique, group, workload

PARTS = ("a", "b")


async def annotated(world: World, delay: str | None) -> None:
    """Change the template so that pods take so long to become ready."""
    template = world.get(SETS, "w").spec["template"]
    for part in template["cliques"]:
        part["annotations"] = {"pod-ready.grove.local/delay": delay} if delay else {}
    await world.patch(SETS, "w", {"spec": {"template": {"cliques": template["cliques"]}}})


async def test_last_valid_spec_remains_after_invalid_updates(world: World) -> None:
    body = workload("w", clique("a", 3, 1), clique("b"), groups=(group("x", 3, 1, "b"),), replicas=2)
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        before = {pod.uid for pod in world.pods()}

        def left() -> int:
            return len([pod for pod in world.pods() if pod.uid in before and is_ready(pod)])

        await annotated(world, "1h")  # never ready, or of an image that does not exist
        await world.until(lambda: left() == 10 and len(world.pods()) == 12)
        await operator.recorder.until_quiet()
        assert left() == 10, "one pod and one replica of the group, in one replica of the set"

        await change(world, "w", "", *PARTS)  # no pod can be created from it
        await world.until(lambda: says(world, CLIQUES, "w-0-a", "image"))
        await asyncio.gather(
            *(world.scale(CLIQUES, "w-0-a", count) for count in (5, 1, 4)),
            *(world.scale(GROUPS, "w-1-x", count) for count in (1, 5, 0)),
        )
        await world.scale(CLIQUES, "w-0-a", 2)
        await world.scale(GROUPS, "w-1-x", 4)
        await annotated(world, None)
        await change(world, "w", "next:1", *PARTS)
        await world.until(lambda: all(map(current, world.pods())) and updated(world, "w"))
        assert (len(world.pods(clique="w-0-a")), len(world.pods())) == (2, 12)
        assert not world.get(CLIQUES, "w-0-a").status.get("lastErrors")

        await change(world, "w", "next:2", *PARTS)
        await world.until(lambda: any(current(pod, "next:2") for pod in world.pods()))
        await world.delete(SETS, "w")
        await world.until(
            lambda: not world.all(SETS) and not world.all(PODS) and world.all_ready(), seconds=180
        )
