"""Invariants of a simulator: at every moment of its history, and once it has converged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from grove.api.conditions import ConditionType
from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.desired.expand import ReplicaLayout, expand
from grove.plan.desired.shared_claims import KIND as CLAIM
from grove.plan.desired.shared_claims import set_claims
from grove.plan.members import pod_state
from grove.plan.model import Plan
from tests.plan.simulator.api_server import Body, Write, decode, encode
from tests.plan.simulator.claims import referred_in, wanted_claims
from tests.plan.simulator.simulator import OPERATOR, Simulator
from tests.runnable import PodVersion, RunnablePods


def check_history(sim: Simulator, *, lagging: bool = False, two_leaders: bool = False) -> None:
    """References are written before pods are created and after they are deleted; no name is used twice.

    `lagging`: plans were made from stale caches. A pod that was created and deleted unobserved then looks
    like one that is not created yet; and when a whole clique is deleted, a gang that was not observed may
    name its pods a little longer.

    `two_leaders`: two leaders wrote at the same time. A gang that was right when a leader wrote it may have
    changed before the leader's next write: then it is enough that the pod was named at some time.
    """
    check = _History(lagging, two_leaders)
    for write in sim.api.history:
        check.follow(write)


class _History:
    """Replays the history and checks what the operator did to pods."""

    def __init__(self, lagging: bool, two_leaders: bool) -> None:
        self.lagging, self.two_leaders = lagging, two_leaders
        self.referenced: dict[str, set[str]] = {}
        self.ever_referenced: set[str] = set()
        self.created_names: set[str] = set()
        self.claims: set[str] = set()
        self.users: dict[str, set[str]] = {}
        self.counts: dict[str, int] = {}
        self.runnable = RunnablePods()
        self.parent_lost = False
        """Another actor deleted a gang or a clique: the one case in which a plan from stale pods may not know
        the pod of an index, and create another one before it is deleted."""

    def follow(self, write: Write) -> None:
        kind, name = write.key
        if kind in ("PodGang", "PodClique") and write.after is None and write.by != OPERATOR:
            self.parent_lost |= self.lagging or self.two_leaders
        if kind == "Pod" and not self.parent_lost:
            version = msgspec.json.decode(write.after, type=PodVersion) if write.after else None
            self.runnable.saw(name, version, str(write))
        if kind == "PodGang":
            self.referenced[name] = set(_names_in(write.after))
            self.ever_referenced |= self.referenced[name]
        elif kind in ("PodCliqueSet", "PodCliqueScalingGroup"):
            self.counts[name] = decode(write.after)["spec"]["replicas"] if write.after else 0
        elif kind == CLAIM:
            self._claim(write)
        if kind == "Pod":
            self.users[name] = referred_in(decode(write.after)) if write.after else set()
        if kind == "Pod" and write.by == OPERATOR:
            object_labels = decode(write.before or write.after)["metadata"]["labels"]
            members = self.referenced.get(object_labels.get(labels.GANG), set())
            if write.verb == "create":
                self._created(write, self.ever_referenced if self.two_leaders else members)
            elif write.verb == "delete" and not (self.lagging and self._clique_goes(object_labels)):
                assert self.two_leaders or name not in members, f"{write}: still a member"

    def _created(self, write: Write, named: set[str]) -> None:
        name = write.key[1]
        assert name in named, f"{write}: its gang does not name it"
        assert self.lagging or self.two_leaders or name not in self.created_names, (
            f"{write}: a name is used twice"
        )
        lacking = self.users[name] - self.claims
        assert self.lagging or self.two_leaders or not lacking, f"{write}: {lacking} does not exist"
        self.created_names.add(name)

    def _claim(self, write: Write) -> None:
        """No claim is deleted that members use."""
        name = write.key[1]
        if write.verb == "delete" and write.by == OPERATOR and not (self.lagging or self.two_leaders):
            users = {pod for pod, claims in self.users.items() if name in claims} & self._members()
            assert not users, f"{write}: {users} use it"
        if write.after is not None:
            self.claims.add(name)
        else:
            self.claims.discard(name)

    def _members(self) -> set[str]:
        """The pods that gangs name."""
        return set().union(*self.referenced.values())

    def _clique_goes(self, object_labels: dict[str, str]) -> bool:
        group = object_labels.get(labels.GROUP)
        group_goes = group is not None and int(object_labels[labels.GROUP_REPLICA]) >= self.counts[group]
        return (
            group_goes or int(object_labels[labels.SET_REPLICA]) >= self.counts[object_labels[labels.PART_OF]]
        )


def _names_in(gang: bytes | None) -> Iterator[str]:
    for group in decode(gang)["spec"]["podgroups"] if gang else ():
        for reference in group["podReferences"]:
            yield reference["name"]


def outline(sim: Simulator) -> dict[str, Any]:
    """The state of a simulator without random names and UIDs."""
    gangs = {
        body["metadata"]["name"]: {
            group["name"]: len(group["podReferences"]) for group in body["spec"]["podgroups"]
        }
        for body in sim.api.objects("PodGang")
    }
    counts = {
        (kind, body["metadata"]["name"]): body["spec"].get("replicas")
        for kind in ("PodClique", "PodCliqueScalingGroup", "Service")
        for body in sim.api.objects(kind)
    }
    pods, claims = sorted(map(clique_of, alive(sim))), sorted(sim.api.all(CLAIM))
    return {"pods": pods, "gangs": gangs, "counts": counts, "claims": claims}


def object_features(sim: Simulator) -> dict[str, Any]:
    """All objects without what depends on history: names and indices of pods, and claims by these, owner
    UIDs, times, generations, update progress, termination history."""
    kinds = [kind for kind in sim.api.past if kind not in ("Pod", CLAIM)]
    seen: dict[str, Any] = {
        f"{kind} {name}": _features(sim, kind, name) for kind in kinds for name in sim.api.all(kind)
    }
    seen["pods"] = sorted(map(_pod_features, alive(sim)))
    return seen


def _features(sim: Simulator, kind: str, name: str) -> Body:
    body = sim.api.get(kind, name)
    metadata, status = body["metadata"], dict(body.get("status", {}))
    notes = {key: note for key, note in metadata.get("annotations", {}).items() if key != keys.TERMINATIONS}
    status.pop("updateProgress", None)
    if "observedGeneration" in status:
        status["observedGeneration"] -= metadata["generation"]
    status["conditions"] = sorted(
        (fact["type"], fact["status"], fact["reason"], fact["message"])
        for fact in status.get("conditions", ())
        if fact["type"] != ConditionType.WAS_SCHEDULED
    )
    spec = decode(re.sub(rb'"podReferences":\[[^]]*\]', _counted, encode(body["spec"])))
    return {"labels": metadata.get("labels"), "annotations": notes, "spec": spec, "status": status}


def _counted(references: re.Match[bytes]) -> bytes:
    return b'"podReferences":%d' % references.group().count(b"{")


def _pod_features(pod: Pod) -> tuple[Any, ...]:
    object_labels = {key: value for key, value in pod.metadata.labels.items() if key != labels.POD_INDEX}
    return clique_of(pod), sorted(object_labels.items()), pod_state.gated(pod), pod_state.ready(pod)


def alive(sim: Simulator) -> list[Pod]:
    return [pod for pod in sim.pods().values() if pod_state.alive(pod)]


def clique_of(pod: Pod) -> str:
    return pod.metadata.labels[labels.CLIQUE]


def check_settled(sim: Simulator) -> None:
    """Every clique has the pods it asks for, each with its own index, and its gang names exactly these."""
    for body in sim.api.objects("PodClique"):
        name = body["metadata"]["name"]
        pods = [pod for pod in alive(sim) if clique_of(pod) == name]
        assert len(pods) == body["spec"]["replicas"], name
        assert len({pod_state.index_of(pod) for pod in pods}) == len(pods), f"{name}: an index is used twice"
        gang = sim.references(body["metadata"]["labels"][labels.GANG])
        assert set(gang.get(name, [])) == {pod.metadata.name for pod in pods}, name
    check_claims(sim)


def check_claims(sim: Simulator) -> None:
    """All desired claims exist, and beyond them only those that pods use."""
    workload = sim.snapshot().workload
    expected = {claim.name for claim in set_claims(workload)}
    for index in range(workload.spec.replicas):
        expected.update(wanted_claims(workload, index, expand_now(sim, index)))
    found = sim.api.all(CLAIM).keys()
    used = set().union(*map(referred_in, sim.api.objects("Pod")))
    assert expected <= found, f"missing: {expected - found}"
    assert found <= expected | used, f"too many: {found - expected - used}"


def expand_now(sim: Simulator, index: int = 0) -> ReplicaLayout:
    """The desired layout of a replica."""
    counts = {body["metadata"]["name"]: body["spec"]["replicas"] for body in _scaled(sim)}
    return expand(sim.snapshot().workload, index, counts, counts)


def _scaled(sim: Simulator) -> Iterator[Body]:
    yield from sim.api.objects("PodCliqueScalingGroup")
    yield from sim.api.objects("PodClique")


def check_floor(sim: Simulator, plan: Plan) -> None:
    """A plan deletes living pods only above the replica count."""
    to_delete = {intent.target.name for intent in plan.intents if intent.id.startswith("delete Pod ")}
    wanted = {clique.name for clique in expand_now(sim).cliques}
    for body in sim.api.objects("PodClique"):
        if body["metadata"]["name"] not in wanted:
            continue
        pods = [pod for pod in alive(sim) if clique_of(pod) == body["metadata"]["name"]]
        leaving = sum(pod.metadata.name in to_delete for pod in pods)
        assert leaving <= max(0, len(pods) - body["spec"]["replicas"]), body["metadata"]["name"]
