"""The operator is killed, replaced or detached while gangs are nominated: no gang is bound in part, and no
node stays reserved."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

from grove.kube.client.resource import PODS
from grove.kube.client.transport import Request, Response
from grove.operator.pod_release import release_pods
from tests.cluster.operator.placement.gang_history import recording_gangs
from tests.cluster.operator.placement.storm import foreign_pod
from tests.cluster.operator.scheduling.test_placement import PLACING, bound, gpus
from tests.cluster.operator.support.harness import PATIENCE, World, operating, successive_operators
from tests.cluster.operator.support.objects import SETS, AnyObject, gated
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import workload

NODES = 16
SIZE = 12
"""Pods of a gang, a node each: more than half of the cluster, so that it is nominated."""


class UnsentReleases(Recorder):
    """Sends every call but those that remove the gate of a pod: these never return."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self.attempted = asyncio.Event()

    async def note(self, request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
        if request.verb == "patch" and b"schedulingGates" in (request.body or b""):
            answer.close()
            self.attempted.set()
            await asyncio.Event().wait()
        return await super().note(request, answer)


def nominated(world: World) -> list[AnyObject]:
    return [pod for pod in world.pods() if gated(pod) and pod.status.get("nominatedNodeName")]


async def kill_after_nomination(world: World) -> None:
    """Create a gang and stop its operator when all of its pods are nominated, and none is released."""
    recorder = UnsentReleases(world.namespace)
    async with operating(world, backends=PLACING, recorder=recorder) as operator:
        await world.create(SETS, workload("mine", gpus("worker", SIZE, 8)))
        async with asyncio.timeout(PATIENCE):
            await recorder.attempted.wait()
        operator.task.cancel()
        operator.stopped.set()
    await world.until(lambda: len(nominated(world)) == SIZE, "all pods nominated")
    assert not bound(world)


async def test_next_operator_releases_a_nominated_gang(world: World) -> None:
    async with recording_gangs(world, SIZE) as history:
        await kill_after_nomination(world)
        async with operating(world, backends=PLACING):
            await world.until(lambda: history.whole == ["mine-0"], "the whole gang")
        assert history.half_bound == []


async def test_release_is_finished_by_later_operators(world: World) -> None:
    """Each operator stops after a few writes: before, between and after the patches that release pods."""
    async with recording_gangs(world, SIZE) as history:
        async with successive_operators(world, itertools.cycle((9, 2, 5)), backends=PLACING):
            await world.create(SETS, workload("mine", gpus("worker", SIZE, 8)))
            await world.until(lambda: len(bound(world)) == SIZE, "the whole gang")
        assert history.half_bound == []


async def test_deleted_set_leaves_no_node_reserved(world: World) -> None:
    await kill_after_nomination(world)
    async with operating(world, backends=PLACING):
        await world.delete(SETS, "mine")
        await world.create(SETS, workload("next", gpus("worker", NODES, 8)))
        await world.until(lambda: len(bound(world)) == NODES, "a gang on all nodes")


async def test_waiting_gang_holds_no_node(world: World) -> None:
    """A gang whose nodes are gone loses its nominations: a foreign pod takes one of them."""
    await kill_after_nomination(world)
    taken = [foreign_pod(f"foreign-{number}", 8) for number in range(NODES - SIZE)]
    for body in taken:
        await world.create(PODS, body)
    await world.until(lambda: len(bound(world)) == len(taken), "the other nodes taken")
    held = nominated(world)[0]
    higher = foreign_pod("urgent", 8, "system-cluster-critical", nodeName=held.status["nominatedNodeName"])
    await world.create(PODS, higher)
    async with operating(world, backends=PLACING):
        await world.until(
            lambda: not nominated(world) and len(world.pods(part_of="mine")) == SIZE, "no holds"
        )
        await world.create(PODS, foreign_pod("late", 8))
        await world.until(lambda: "late" in bound(world), "a foreign pod on a node that was held")


async def test_detach_leaves_no_gate_and_no_nomination(world: World) -> None:
    await kill_after_nomination(world)
    released = [name async for name in release_pods(world.client)]
    assert len(released) == len(world.pods())
    await world.until(lambda: not any(map(gated, world.pods())), "no gates")
    await world.until(lambda: len(bound(world)) == len(world.pods()), "bound by the scheduler")
