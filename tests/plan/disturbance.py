"""One disturbance at a time, read off the history of a world: whenever the operator takes down a pod that
answers, and no count asks for it, it was the turn of its replica, and every other unit of its clique or group
was well, or no more of them were not than may be down at once."""

from __future__ import annotations

from grove.api import labels
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.moments import moment
from tests.plan.api_server import Body, Deed, decode
from tests.plan.world import OPERATOR, World, read


def check_disturbances(world: World) -> int:
    """Judge every deed. Says how many pods that answered were taken down."""
    onlooker = _Onlooker()
    for deed in world.api.history:
        onlooker.follow(deed)
    return onlooker.taken


class _Onlooker:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.specs: dict[tuple[str, str], Body] = {}
        self.statuses: dict[str, Body] = {}
        self.taken = 0

    def follow(self, deed: Deed) -> None:
        kind, name = deed.key
        if kind == "Pod":
            if deed.by == OPERATOR and deed.verb == "delete":
                self._judge(deed, read("Pod", deed.before))
            if deed.after is None:
                del self.pods[name]
            else:
                self.pods[name] = read("Pod", deed.after)
        elif deed.after is not None:
            body = decode(deed.after)
            self.specs[deed.key] = body["spec"]
            self.statuses[name] = body.get("status", {})
        else:
            self.specs.pop(deed.key, None)

    def _judge(self, deed: Deed, pod: Pod) -> None:
        if not (state.alive(pod) and state.ready(pod)) or self._too_many(pod) or self._in_ruins(pod):
            return
        self.taken += 1
        carried = pod.metadata.labels
        progress = self.statuses[carried[labels.PART_OF]].get("updateProgress", {})
        turns = [entry["replicaIndex"] for entry in progress.get("currentlyUpdating", ())]
        assert turns == [int(carried[labels.SET_REPLICA])], f"{deed}: not its turn but that of {turns}"
        down: set[str] = set()
        for other in self.pods.values():
            mute = self._too_many(other) and not state.terminating(other)
            if _family(other) == _family(pod) and _unit(other) != _unit(pod) and not mute:
                down |= set() if self._well(other) or _stuck(other, deed) else {_unit(other)}
        assert len(down) < self._budget(pod), f"{deed}: units {sorted(down)} are not well"

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
        if state.terminating(pod):
            return False
        if labels.GROUP not in pod.metadata.labels:
            return state.alive(pod) and state.ready(pod)
        return self._enough(pod.metadata.labels[labels.CLIQUE])

    def _enough(self, clique: str) -> bool:
        members = [one for one in self.pods.values() if one.metadata.labels[labels.CLIQUE] == clique]
        answering = sum(state.alive(one) and state.ready(one) for one in members)
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
        taken = {state.index_of(one) for one in members if state.alive(one)}
        return len(taken) > count or (len(taken) == count and state.index_of(pod) not in taken)


def _stuck(pod: Pod, deed: Deed) -> bool:
    """It should have been gone long before: nobody waits for it."""
    if not state.terminating(pod):
        return False
    now = read("Pod", deed.after).metadata.deletion_timestamp
    return moment(now) - moment(pod.metadata.deletion_timestamp) >= 30.0


def _family(pod: Pod) -> str:
    """The units that a unit is one of."""
    return pod.metadata.labels.get(labels.GROUP) or pod.metadata.labels[labels.CLIQUE]


def _unit(pod: Pod) -> str:
    carried = pod.metadata.labels
    return carried.get(labels.GROUP_REPLICA) or carried[labels.POD_INDEX]
