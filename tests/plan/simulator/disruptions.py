"""Checks the history of a simulator for one disruption at a time: whenever the operator deletes a ready pod
that is not surplus, its replica is the one being updated, and every other unit of its clique or group is
healthy, or fewer than maxUnavailable are not.
"""

from __future__ import annotations

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.members import pod_state
from grove.plan.timestamps import timestamp
from tests.plan.simulator.api_server import Body, Write, decode
from tests.plan.simulator.simulator import OPERATOR, Simulator, read


def check_disruptions(sim: Simulator) -> int:
    """Checks every write. Returns how many ready pods were deleted."""
    check = _DisruptionCheck()
    for write in sim.api.history:
        check.follow(write)
    return check.disrupted


class _DisruptionCheck:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.specs: dict[tuple[str, str], Body] = {}
        self.statuses: dict[str, Body] = {}
        self.disrupted = 0

    def follow(self, write: Write) -> None:
        kind, name = write.key
        if kind == "Pod":
            if write.by == OPERATOR and write.verb == "delete":
                self._check(write, read("Pod", write.before))
            if write.after is None:
                del self.pods[name]
            else:
                self.pods[name] = read("Pod", write.after)
        elif write.after is not None:
            body = decode(write.after)
            self.specs[write.key] = body["spec"]
            self.statuses[name] = body.get("status", {})
        else:
            self.specs.pop(write.key, None)

    def _check(self, write: Write, pod: Pod) -> None:
        if not (pod_state.alive(pod) and pod_state.ready(pod)) or self._too_many(pod) or self._is_broken(pod):
            return
        self.disrupted += 1
        object_labels = pod.metadata.labels
        progress = self.statuses[object_labels[labels.PART_OF]].get("updateProgress", {})
        updating = [entry["replicaIndex"] for entry in progress.get("currentlyUpdating", ())]
        assert updating == [int(object_labels[labels.SET_REPLICA])], (
            f"{write}: replicas {updating} are being updated"
        )
        down: set[str] = set()
        for other in self.pods.values():
            ignored = self._too_many(other) and not pod_state.terminating(other)
            if _parent(other) == _parent(pod) and _unit(other) != _unit(pod) and not ignored:
                down |= set() if self._is_healthy(other) or _stuck(other, write) else {_unit(other)}
        assert len(down) < self._budget(pod), f"{write}: units {sorted(down)} are not healthy"

    def _budget(self, pod: Pod) -> int:
        """How many units of a pod's clique or group may be down at once."""
        object_labels = pod.metadata.labels
        template = self.specs[("PodCliqueSet", object_labels[labels.PART_OF])]["template"]
        groups = template.get("podCliqueScalingGroups", ())
        cliques = {name: group for group in groups for name in group["cliqueNames"]}
        own = {clique["name"]: clique for clique in template["cliques"]} | cliques
        rolling_update = own[object_labels[labels.CLIQUE_TEMPLATE]].get("rollingUpdate") or {}
        return int(rolling_update.get("maxUnavailable") or 1)

    def _is_healthy(self, pod: Pod) -> bool:
        """It is ready; or, in a group, its clique has its minimum without it."""
        if pod_state.terminating(pod):
            return False
        if labels.GROUP not in pod.metadata.labels:
            return pod_state.alive(pod) and pod_state.ready(pod)
        return self._has_minimum(pod.metadata.labels[labels.CLIQUE])

    def _has_minimum(self, clique: str) -> bool:
        members = [one for one in self.pods.values() if one.metadata.labels[labels.CLIQUE] == clique]
        ready = sum(pod_state.alive(one) and pod_state.ready(one) for one in members)
        return bool(ready >= self.specs[("PodClique", clique)]["minAvailable"])

    def _is_broken(self, pod: Pod) -> bool:
        """Its group replica is below its minimum anyway: it is replaced as a whole."""
        if labels.GROUP not in pod.metadata.labels:
            return False
        unit = [one for one in self.pods.values() if (_parent(one), _unit(one)) == (_parent(pod), _unit(pod))]
        return not all(map(self._has_minimum, {one.metadata.labels[labels.CLIQUE] for one in unit}))

    def _too_many(self, pod: Pod) -> bool:
        """The pod is surplus by a replica count."""
        object_labels = pod.metadata.labels
        replicas = self.specs[("PodCliqueSet", object_labels[labels.PART_OF])]["replicas"]
        if int(object_labels[labels.SET_REPLICA]) >= replicas:
            return True
        if group := object_labels.get(labels.GROUP):
            spec = self.specs.get(("PodCliqueScalingGroup", group), {"replicas": 0})
            if int(object_labels[labels.GROUP_REPLICA]) >= spec["replicas"]:
                return True
        name = object_labels[labels.CLIQUE]
        count = self.specs.get(("PodClique", name), {"replicas": 0})["replicas"]
        members = [one for one in self.pods.values() if one.metadata.labels[labels.CLIQUE] == name]
        disrupted = {pod_state.index_of(one) for one in members if pod_state.alive(one)}
        return len(disrupted) > count or (
            len(disrupted) == count and pod_state.index_of(pod) not in disrupted
        )


def _stuck(pod: Pod, write: Write) -> bool:
    """It is overdue: the operator does not wait for it."""
    if not pod_state.terminating(pod):
        return False
    now = read("Pod", write.after).metadata.deletion_timestamp
    return timestamp(now) - timestamp(pod.metadata.deletion_timestamp) >= 30.0


def _parent(pod: Pod) -> str:
    """The group or clique of a pod."""
    return pod.metadata.labels.get(labels.GROUP) or pod.metadata.labels[labels.CLIQUE]


def _unit(pod: Pod) -> str:
    object_labels = pod.metadata.labels
    return object_labels.get(labels.GROUP_REPLICA) or object_labels[labels.POD_INDEX]
