"""Pods that crash and do not recover: after `terminationDelay` the gang is restarted, exactly once."""

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
    """Write the status of crashed containers into the pods of a clique. The (simulated) node does not change
    it, as if the containers were never restarted."""
    for pod in world.pods(clique=clique):
        await world.patch(PODS, pod.name, {"status": CRASHED}, subresource="status")


async def gangs_below_min_available(world: World) -> None:
    body = small()
    body["spec"]["template"]["terminationDelay"] = "1s"
    await world.create(SETS, body)
    await world.checkpoint("created", 5)
    before = {pod.uid for pod in world.pods()}
    await crash(world, "small-0-router")
    await world.until(
        lambda: not before & {pod.uid for pod in world.all(PODS)}, "all pods of the replica deleted"
    )
    await world.checkpoint("replica restarted", 5)
    before = {pod.uid for pod in world.pods()}
    broken = {pod.uid for pod in world.pods() if "-model-1-" in pod.name}
    await crash(world, "small-0-model-1-worker")
    await world.until(
        lambda: not broken & {pod.uid for pod in world.all(PODS)}, "the pods of the group replica deleted"
    )
    await world.checkpoint("group replica restarted", 5)
    assert before - broken <= {pod.uid for pod in world.pods()}, "all other pods keep running"


SCENARIOS = {"gangs below minAvailable": gangs_below_min_available}
