"""What others do to pods: the scheduler, the kubelet, the garbage collector, people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.moments import rfc3339
from tests.plan.api_server import Body
from tests.plan.world import World


def _condition(world: World, type_: str, status: str) -> Body:
    return {"type": type_, "status": status, "lastTransitionTime": rfc3339(world.now)}


def _report(world: World, name: str, phase: str, **facts: str) -> None:
    conditions = [_condition(world, type_, status) for type_, status in facts.items()]
    status = {"phase": phase, "conditions": conditions}
    world.api.patch("Pod", name, {"status": status}, status=True, by="kubelet")


def schedule(world: World, *names: str) -> None:
    """Give pods a node, unless something gates them."""
    for name in names:
        pod = world.api.get("Pod", name)
        if not pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName"):
            world.api.patch("Pod", name, {"spec": {"nodeName": "node"}}, by="scheduler")
            _report(world, name, "Pending", PodScheduled="True")


def run(world: World, *names: str) -> None:
    """Pods get a node and become ready."""
    for name in names:
        schedule(world, name)
        if world.api.get("Pod", name)["spec"].get("nodeName"):
            _report(world, name, "Running", PodScheduled="True", Ready="True")


def ail(world: World, name: str) -> None:
    """The pod runs and does not answer any more."""
    _report(world, name, "Running", PodScheduled="True", Ready="False")


def crash(world: World, *names: str) -> None:
    """Containers of these pods have ended badly and are tried again."""
    for name in names:
        _report(world, name, "Running", PodScheduled="True", Ready="False")
        status = {"name": "main", "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
        world.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def lack_image(world: World, name: str) -> None:
    """The node cannot find the pod's image."""
    _report(world, name, "Pending", PodScheduled="True", Ready="False")
    status = {"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    world.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def refuse(world: World) -> None:
    """The scheduler finds no room for any pod that still waits."""
    for name in living(world):
        if not world.api.get("Pod", name)["spec"].get("nodeName"):
            fact = {**_condition(world, "PodScheduled", "False"), "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [fact]}
            world.api.patch("Pod", name, {"status": status}, status=True, by="scheduler")


def answers(pod: Pod) -> bool:
    return state.alive(pod) and state.ready(pod)


def run_all(world: World) -> None:
    """Every pod that may, runs."""
    for name in living(world):
        run(world, name)


def living(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.api.objects("Pod") if not _leaving(pod)]


def _leaving(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def fail(world: World, name: str, phase: str = "Failed") -> None:
    """The pod ends: its processes, or the kubelet that evicted it, say so."""
    _report(world, name, phase, PodScheduled="True", Ready="False")


def delete(world: World, name: str) -> None:
    """Somebody deletes a pod, with grace."""
    world.api.delete("Pod", name)


def force_delete(world: World, name: str) -> None:
    """Somebody deletes a pod without waiting for the node."""
    world.api.vanish("Pod", name, by="user")


def finish_terminating(world: World, names: Iterable[str] | None = None) -> None:
    """The kubelet is done with pods that terminate."""
    leaving = [pod["metadata"]["name"] for pod in world.api.objects("Pod") if _leaving(pod)]
    for name in leaving if names is None else names:
        world.api.vanish("Pod", name, by="kubelet")


def see_off(world: World, *indices: int) -> None:
    """Replicas that their set no longer has go: first their pods, when these are gone all else."""
    for index in indices:
        world.settle(index)
    finish_terminating(world)
    for index in indices:
        world.settle(index)


def collect_garbage(world: World) -> None:
    """Delete what belongs to somebody who is gone, until nothing does."""
    while True:
        uids = {body["metadata"]["uid"] for kind in world.api.past for body in world.api.objects(kind)}
        orphans = [
            (kind, body["metadata"]["name"])
            for kind in world.api.past
            for body in world.api.objects(kind)
            if not _leaving(body) and not uids.issuperset(_owners(body)) and _owners(body)
        ]
        if not orphans:
            return
        for kind, name in orphans:
            world.api.delete(kind, name, by="collector")


def _owners(body: Body) -> set[str]:
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences", [])}
