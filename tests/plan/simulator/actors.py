"""What others do to pods: the scheduler, the kubelet, the garbage collector, people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grove.api.types.pod import Pod
from grove.plan.members import pod_state
from grove.plan.timestamps import rfc3339
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.simulator import Simulator


def _condition(sim: Simulator, type_: str, status: str) -> Body:
    return {"type": type_, "status": status, "lastTransitionTime": rfc3339(sim.now)}


def _report(sim: Simulator, name: str, phase: str, **facts: str) -> None:
    conditions = [_condition(sim, type_, status) for type_, status in facts.items()]
    status = {"phase": phase, "conditions": conditions}
    sim.api.patch("Pod", name, {"status": status}, status=True, by="kubelet")


def schedule(sim: Simulator, *names: str) -> None:
    """Give pods a node, unless something gates them."""
    for name in names:
        pod = sim.api.get("Pod", name)
        if not pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName"):
            sim.api.patch("Pod", name, {"spec": {"nodeName": "node"}}, by="scheduler")
            _report(sim, name, "Pending", PodScheduled="True")


def run(sim: Simulator, *names: str) -> None:
    """Pods get a node and become ready."""
    for name in names:
        schedule(sim, name)
        if sim.api.get("Pod", name)["spec"].get("nodeName"):
            _report(sim, name, "Running", PodScheduled="True", Ready="True")


def make_unready(sim: Simulator, name: str) -> None:
    """The pod runs and does not answer any more."""
    _report(sim, name, "Running", PodScheduled="True", Ready="False")


def crash(sim: Simulator, *names: str) -> None:
    """Containers of these pods have ended badly and are tried again."""
    for name in names:
        _report(sim, name, "Running", PodScheduled="True", Ready="False")
        status = {"name": "main", "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
        sim.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def lack_image(sim: Simulator, name: str) -> None:
    """The node cannot find the pod's image."""
    _report(sim, name, "Pending", PodScheduled="True", Ready="False")
    status = {"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    sim.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def refuse(sim: Simulator) -> None:
    """The scheduler finds no room for any pod that still waits."""
    for name in living(sim):
        if not sim.api.get("Pod", name)["spec"].get("nodeName"):
            fact = {**_condition(sim, "PodScheduled", "False"), "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [fact]}
            sim.api.patch("Pod", name, {"status": status}, status=True, by="scheduler")


def answers(pod: Pod) -> bool:
    return pod_state.alive(pod) and pod_state.ready(pod)


def run_all(sim: Simulator) -> None:
    """Every pod that may, runs."""
    for name in living(sim):
        run(sim, name)


def living(sim: Simulator) -> list[str]:
    return [pod["metadata"]["name"] for pod in sim.api.objects("Pod") if not _leaving(pod)]


def _leaving(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def fail(sim: Simulator, name: str, phase: str = "Failed") -> None:
    """The pod ends: its processes, or the kubelet that evicted it, say so."""
    _report(sim, name, phase, PodScheduled="True", Ready="False")


def delete(sim: Simulator, name: str) -> None:
    """Somebody deletes a pod, with grace."""
    sim.api.delete("Pod", name)


def force_delete(sim: Simulator, name: str) -> None:
    """Somebody deletes a pod without waiting for the node."""
    sim.api.vanish("Pod", name, by="user")


def finish_terminating(sim: Simulator, names: Iterable[str] | None = None) -> None:
    """The kubelet is done with pods that terminate."""
    leaving = [pod["metadata"]["name"] for pod in sim.api.objects("Pod") if _leaving(pod)]
    for name in leaving if names is None else names:
        sim.api.vanish("Pod", name, by="kubelet")


def finish_scale_in(sim: Simulator, *indices: int) -> None:
    """Replicas that their set no longer has go: first their pods, when these are gone all else."""
    for index in indices:
        sim.settle(index)
    finish_terminating(sim)
    for index in indices:
        sim.settle(index)


def collect_garbage(sim: Simulator) -> None:
    """Delete what belongs to somebody who is gone, until nothing does."""
    while True:
        uids = {body["metadata"]["uid"] for kind in sim.api.past for body in sim.api.objects(kind)}
        orphans = [
            (kind, body["metadata"]["name"])
            for kind in sim.api.past
            for body in sim.api.objects(kind)
            if not _leaving(body) and not uids.issuperset(_owners(body)) and _owners(body)
        ]
        if not orphans:
            return
        for kind, name in orphans:
            sim.api.delete(kind, name, by="collector")


def _owners(body: Body) -> set[str]:
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences", [])}
