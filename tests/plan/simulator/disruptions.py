"""One disturbance at a time, read off the history of a world: whenever the operator takes down a pod that
answers, and no count asks for it, it was the turn of its replica, and every other unit of its clique or group
was well, or no more of them were not than may be down at once."""

from __future__ import annotations

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.members import pod_state
from grove.plan.timestamps import timestamp
from tests.plan.simulator.api_server import Body, Write, decode
from tests.plan.simulator.simulator import OPERATOR, Simulator, read


def check_disturbances(sim: Simulator) -> int:
    """Judge every deed. Says how many pods that answered were taken down."""
    onlooker = _DisruptionCheck()
    for write in sim.api.history:
        onlooker.follow(write)
    return onlooker.taken


class _DisruptionCheck:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.specs: dict[tuple[str, str], Body] = {}
        self.statuses: dict[str, Body] = {}
        self.taken = 0

    def follow(self, write: Write) -> None:
        kind, name = write.key
        if kind == "Pod":
            if write.by == OPERATOR and write.verb == "delete":
                self._judge(write, read("Pod", write.before))
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

    def _judge(self, write: Write, pod: Pod) -> None:
        if not (pod_state.alive(pod) and pod_state.ready(pod)) or self._too_many(pod) or self._in_ruins(pod):
            return
        self.taken += 1
        carried = pod.metadata.labels
        progress = self.statuses[carried[labels.PART_OF]].get("updateProgress", {})
        turns = [entry["replicaIndex"] for entry in progress.get("currentlyUpdating", ())]
        assert turns == [int(carried[labels.SET_REPLICA])], f"{write}: not its turn but that of {turns}"
        down: set[str] = set()
        for other in self.pods.values():
            mute = self._too_many(other) and not pod_state.terminating(other)
            if _family(other) == _family(pod) and _unit(other) != _unit(pod) and not mute:
                down |= set() if self._well(other) or _stuck(other, write) else {_unit(other)}
        assert len(down) < self._budget(pod), f"{write}: units {sorted(down)} are not well"

    def _budget(self, pod: Pod) -> int:
        """How many units of a pod's clique or group may be down at once."""
        carried = pod.metadata.labels
        template = self.specs[("PodCliqueSet", carried[labels.PART_OF])]["template"]
        groups = template.get("podCliqueScalingGroups", ())
        cliques = {name: group for group in groups for name in group["cliqueNames"]}
        own = {clique["name"]: clique for clique in template["cliques"]} | cliques
        pace = own[carried[labels.CLIQUE_TEMPLATE]].get("rollingUpdate") or {}
        return int(pace.get("maxUnavailable") or 1)

    def _well(self, pod: Pod) -> bool:
        """It answers; or, in a group, as many as its clique needs, and it may not be one of them."""
        if pod_state.terminating(pod):
            return False
        if labels.GROUP not in pod.metadata.labels:
            return pod_state.alive(pod) and pod_state.ready(pod)
        return self._enough(pod.metadata.labels[labels.CLIQUE])

    def _enough(self, clique: str) -> bool:
        members = [one for one in self.pods.values() if one.metadata.labels[labels.CLIQUE] == clique]
        answering = sum(pod_state.alive(one) and pod_state.ready(one) for one in members)
        return bool(answering >= self.specs[("PodClique", clique)]["minAvailable"])

    def _in_ruins(self, pod: Pod) -> bool:
        """Its group's replica is of no use to anybody anyway: it is replaced as a whole."""
        if labels.GROUP not in pod.metadata.labels:
            return False
        unit = [one for one in self.pods.values() if (_family(one), _unit(one)) == (_family(pod), _unit(pod))]
        return not all(map(self._enough, {one.metadata.labels[labels.CLIQUE] for one in unit}))

    def _too_many(self, pod: Pod) -> bool:
        """A count is lower than what is there."""
        carried = pod.metadata.labels
        replicas = self.specs[("PodCliqueSet", carried[labels.PART_OF])]["replicas"]
        if int(carried[labels.SET_REPLICA]) >= replicas:
            return True
        if group := carried.get(labels.GROUP):
            spec = self.specs.get(("PodCliqueScalingGroup", group), {"replicas": 0})
            if int(carried[labels.GROUP_REPLICA]) >= spec["replicas"]:
                return True
        name = carried[labels.CLIQUE]
        count = self.specs.get(("PodClique", name), {"replicas": 0})["replicas"]
        members = [one for one in self.pods.values() if one.metadata.labels[labels.CLIQUE] == name]
        taken = {pod_state.index_of(one) for one in members if pod_state.alive(one)}
        return len(taken) > count or (len(taken) == count and pod_state.index_of(pod) not in taken)


def _stuck(pod: Pod, write: Write) -> bool:
    """It should have been gone long before: nobody waits for it."""
    if not pod_state.terminating(pod):
        return False
    now = read("Pod", write.after).metadata.deletion_timestamp
    return timestamp(now) - timestamp(pod.metadata.deletion_timestamp) >= 30.0


def _family(pod: Pod) -> str:
    """The units that a unit is one of."""
    return pod.metadata.labels.get(labels.GROUP) or pod.metadata.labels[labels.CLIQUE]


def _unit(pod: Pod) -> str:
    carried = pod.metadata.labels
    return carried.get(labels.GROUP_REPLICA) or carried[labels.POD_INDEX]
