"""Pods that crash and do not come back: after its delay the gang is started anew, once, and so it stays."""

from __future__ import annotations

from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import small

CRASHED = {
    "conditions": [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
    ],
    "containerStatuses": [
        {
            "name": "main",
            "image": "model:1",
            "imageID": "",
            "ready": False,
            "restartCount": 3,
            "lastState": {"terminated": {"exitCode": 1}},
        }
    ],
}


async def crash(world: World, clique: str) -> None:
    """Nobody mends it: a node that had restarted its containers would have said so."""
    for pod in world.pods(clique=clique):
        await world.patch(PODS, pod.name, {"status": CRASHED}, subresource="status")


async def gangs_that_lost_their_minimum(world: World) -> None:
    body = small()
    body["spec"]["template"]["terminationDelay"] = "1s"
    await world.create(SETS, body)
    await world.rest("made", 5)
    before = {pod.uid for pod in world.pods()}
    await crash(world, "small-0-router")
    await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)}, "the whole replica gone")
    await world.rest("started anew", 5)
    before = {pod.uid for pod in world.pods()}
    broken = {pod.uid for pod in world.pods() if "-model-1-" in pod.name}
    await crash(world, "small-0-model-1-worker")
    await world.until(lambda: not broken & {pod.uid for pod in world.all(PODS)}, "the group's replica gone")
    await world.rest("one of its group started anew", 5)
    assert before - broken <= {pod.uid for pod in world.pods()}, "nobody else"


SCENARIOS = {"gangs that lost their minimum": gangs_that_lost_their_minimum}
