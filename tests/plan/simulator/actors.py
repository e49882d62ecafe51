"""Actors other than the operator: scheduler, kubelet, garbage collector, users."""

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
    """The pod runs and is no longer ready."""
    _report(sim, name, "Running", PodScheduled="True", Ready="False")


def crash(sim: Simulator, *names: str) -> None:
    """Containers of these pods failed and are restarted."""
    for name in names:
        _report(sim, name, "Running", PodScheduled="True", Ready="False")
        status = {"name": "main", "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
        sim.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def lack_image(sim: Simulator, name: str) -> None:
    """The node cannot pull the pod's image."""
    _report(sim, name, "Pending", PodScheduled="True", Ready="False")
    status = {"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    sim.api.patch("Pod", name, {"status": {"containerStatuses": [status]}}, status=True, by="kubelet")


def refuse(sim: Simulator) -> None:
    """The scheduler finds no node for pods without one."""
    for name in living(sim):
        if not sim.api.get("Pod", name)["spec"].get("nodeName"):
            fact = {**_condition(sim, "PodScheduled", "False"), "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [fact]}
            sim.api.patch("Pod", name, {"status": status}, status=True, by="scheduler")


def is_ready(pod: Pod) -> bool:
    return pod_state.alive(pod) and pod_state.ready(pod)


def run_all(sim: Simulator) -> None:
    """Runs every pod that is not gated."""
    for name in living(sim):
        run(sim, name)


def living(sim: Simulator) -> list[str]:
    return [pod["metadata"]["name"] for pod in sim.api.objects("Pod") if not _is_terminating(pod)]


def _is_terminating(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def fail(sim: Simulator, name: str, phase: str = "Failed") -> None:
    """The pod ends: completed, failed or evicted."""
    _report(sim, name, phase, PodScheduled="True", Ready="False")


def delete(sim: Simulator, name: str) -> None:
    """A user deletes a pod, with grace period."""
    sim.api.delete("Pod", name)


def force_delete(sim: Simulator, name: str) -> None:
    """A user force-deletes a pod."""
    sim.api.vanish("Pod", name, by="user")


def finish_terminating(sim: Simulator, names: Iterable[str] | None = None) -> None:
    """The kubelet confirms that pods have terminated."""
    leaving = [pod["metadata"]["name"] for pod in sim.api.objects("Pod") if _is_terminating(pod)]
    for name in leaving if names is None else names:
        sim.api.vanish("Pod", name, by="kubelet")


def finish_scale_in(sim: Simulator, *indices: int) -> None:
    """Deletes surplus replicas: first their pods, then all other objects."""
    for index in indices:
        sim.settle(index)
    finish_terminating(sim)
    for index in indices:
        sim.settle(index)


def collect_garbage(sim: Simulator) -> None:
    """Deletes objects whose owners are gone, until there are none."""
    while True:
        uids = {body["metadata"]["uid"] for kind in sim.api.past for body in sim.api.objects(kind)}
        orphans = [
            (kind, body["metadata"]["name"])
            for kind in sim.api.past
            for body in sim.api.objects(kind)
            if not _is_terminating(body) and not uids.issuperset(_owners(body)) and _owners(body)
        ]
        if not orphans:
            return
        for kind, name in orphans:
            sim.api.delete(kind, name, by="collector")


def _owners(body: Body) -> set[str]:
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences", [])}
