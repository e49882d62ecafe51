"""Helpers for tests of rollouts: workloads with slow pods, and the progress of an update."""

from __future__ import annotations

from typing import Any

from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.cluster.operator.support.workloads import Body

SLOW = {"pod-ready.grove.local/delay": "400ms", "pod-gone.grove.local/delay": "300ms"}


def slow(body: Body, replicas: int = 1, **strategy: Any) -> Body:
    """The set with pods that become ready and terminate slowly, so that tests see the states in between."""
    body["spec"]["replicas"] = replicas
    if strategy:
        body["spec"]["updateStrategy"] = strategy
    for clique in body["spec"]["template"]["cliques"]:
        clique["annotations"] = SLOW
    return body


def current(pod: AnyObject, image: str = "next:1") -> bool:
    return bool(pod.spec["containers"][0]["image"] == image)


def updated(world: World, name: str) -> bool:
    """Whether the update has ended and all objects are ready."""
    found = world.get(SETS, name)
    progress = progress_of(world, name)
    return (
        found.settled
        and bool(progress.get("updateEndedAt"))
        and found.status["updatedReplicas"] == found.spec["replicas"]
        and world.all_ready()
    )


def progress_of(world: World, name: str) -> Body:
    progress: Body = world.get(SETS, name).status.get("updateProgress", {})
    return progress
