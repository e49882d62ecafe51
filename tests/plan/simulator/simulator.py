"""A namespace with one set in it: plans are made from it and carried out on it, and others meddle.

Snapshots are built as the operator builds them, by labels, and decoded from JSON by the real types. `lag`
makes one from older states, each kind as old as it likes: caches of different kinds lag each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.intents import Create, Delete, DeleteCollection, Intent, Status
from grove.api.meta import ObjectMeta
from grove.api.naming import labels, names
from grove.api.types.kubernetes_objects import (
    HorizontalPodAutoscaler,
    PartialObjectMetadata,
    ResourceClaimTemplateObject,
    Service,
)
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.executor.deferred_values import DeferredValues
from grove.kube.executor.dependency_graph import DependencyGraph, IntentStep
from grove.plan.desired.expand import expand
from grove.plan.desired.shared_claims import KIND as CLAIM
from grove.plan.desired.shared_claims import ClaimObjects, NamespacedName
from grove.plan.gang.scheduler_selection import scheduler_of
from grove.plan.model import Plan
from grove.plan.ownership.ownership import keep_owned_claims
from grove.plan.podcliqueset import ReplicaReport, plan_set
from grove.plan.replica import plan_replica
from grove.plan.resource_claims import plan_set_claims
from grove.plan.snapshot import Snapshot
from grove.plan.timestamps import rfc3339
from grove.plan.writes.diff import status_patch
from grove.schedulers.backend import SchedulerBackend, SchedulerObject
from grove.schedulers.registry import SchedulerBackends
from grove.topology.constraints import ResolvedTopology
from tests.plan.simulator.api_server import ApiServer, Body, Conflict, NotFound, Refused
from tests.plan.simulator.claims import claims_in_sight

OPERATOR = "operator"
KINDS: Mapping[str, Any] = {
    "PodCliqueSet": PodCliqueSet,
    "PodCliqueScalingGroup": PodCliqueScalingGroup,
    "PodClique": PodClique,
    "PodGang": PodGang,
    "Service": Service,
    "HorizontalPodAutoscaler": HorizontalPodAutoscaler,
    "Pod": Pod,
    "PodGroup": SchedulerObject,
    CLAIM: PartialObjectMetadata,
}
Lag = Mapping[str, int]
"""How many changes ago a kind was last seen; 0 is now."""


@lru_cache(maxsize=20_000)
def read(kind: str, stored: bytes) -> Any:
    """An object as the operator reads it."""
    return msgspec.json.decode(stored, type=KINDS[kind])


class Simulator:
    """The API server, the set, and what the operator remembers."""

    def __init__(self, workload: Body, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.api = ApiServer(lambda: rfc3339(self.now))
        self.set_name: str = workload["metadata"]["name"]
        self.api.create(workload)
        self.binding: PartialObjectMetadata | None = PartialObjectMetadata(ObjectMeta(name="grove.io:pcs:wl"))
        self.init_image = "example.com/initc:1"
        self.topology: ResolvedTopology | None = None
        """The topology that the set means; None while constraints are switched off."""
        self.reports: dict[int, ReplicaReport] = {}
        """What the operator remembers of its latest pass over each replica."""
        self.scheduler: SchedulerBackend | None = None
        self.backends: SchedulerBackends | None = None
        """Those that the operator would choose the scheduler from."""
        self.claim_templates: dict[NamespacedName, ResourceClaimTemplateObject] = {}
        self.claims_visible = True
        self.crd_problem = ""
        self.awake_since = 0
        """How many changes of pods the operator has not seen: those before it started."""

    def copy(self) -> Simulator:
        """The same world once more: what happens in one is not seen in the other."""
        twin = copy(self)
        twin.api = self.api.copy(lambda: rfc3339(twin.now))
        twin.reports = dict(self.reports)
        return twin

    # What the operator sees.

    def snapshot(self, index: int = 0, lag: Lag | None = None) -> Snapshot:
        """One replica of the set, as the operator's caches have it."""
        seen = {kind: self._seen(kind, index, (lag or {}).get(kind, 0)) for kind in KINDS}
        workload = seen["PodCliqueSet"][self.set_name]
        counts = {name: group.spec.replicas for name, group in seen["PodCliqueScalingGroup"].items()}
        expected = {gang.name for gang in expand(workload, index, counts, {}).gangs}
        gangs = self._past("PodGang", (lag or {}).get("PodGang", 0))
        seen["PodGang"] |= {
            name: read("PodGang", stored) for name, stored in gangs.items() if name in expected
        }
        pods = tuple(seen["Pod"].values())
        in_use = self.backends.by_name if self.backends else {}
        asked = scheduler_of(workload, index, seen["PodGang"], pods, in_use)
        return Snapshot(
            workload=workload,
            index=index,
            service=seen["Service"].get(names.service(self.set_name, index)),
            groups=seen["PodCliqueScalingGroup"],
            cliques=seen["PodClique"],
            gangs=seen["PodGang"],
            autoscalers=seen["HorizontalPodAutoscaler"] | self._named_like_parts(workload, index, lag),
            pods=pods,
            deleted_pods=self._deleted_pods((lag or {}).get("Pod", 0), seen["PodGang"]),
            binding=self.binding,
            init_image=self.init_image,
            topology=self.topology,
            scheduler=self.backends.of(asked) if self.backends else self.scheduler,
            scheduler_objects=seen["PodGroup"],
            shared=self._shared(workload, index, seen, (lag or {}).get(CLAIM, 0)),
            crd_problem=self.crd_problem,
        )

    def _shared(self, workload: PodCliqueSet, index: int, seen: Mapping[str, Any], lag: int) -> ClaimObjects:
        claims = {name: read(CLAIM, stored) for name, stored in self._past(CLAIM, lag).items()}
        owners = {*seen["PodClique"], *seen["PodCliqueScalingGroup"]}
        found = claims_in_sight(claims, workload, index, owners)
        return (
            ClaimObjects(found, self.claim_templates) if self.claims_visible else ClaimObjects(visible=False)
        )

    def _named_like_parts(self, workload: PodCliqueSet, index: int, lag: Lag | None) -> dict[str, Any]:
        """Autoscalers that upstream made: they do not say their replica, but have their names."""
        kind, template = "HorizontalPodAutoscaler", workload.spec.template
        parts = (*template.cliques, *template.pod_clique_scaling_groups)
        expected = {names.autoscaler(self.set_name, index, part.name) for part in parts}
        past = self._past(kind, (lag or {}).get(kind, 0))
        return {name: read(kind, stored) for name, stored in past.items() if name in expected}

    def _past(self, kind: str, lag: int) -> dict[str, bytes]:
        states = self.api.past.get(kind, [{}])
        first = 1 if kind == "PodCliqueSet" else 0  # without the set there is no plan
        return states[max(len(states) - 1 - lag, first)]

    def _seen(self, kind: str, index: int, lag: int) -> dict[str, Any]:
        found = {name: read(kind, stored) for name, stored in self._past(kind, lag).items()}
        if kind in ("PodCliqueSet", CLAIM):
            return found
        wanted = {labels.PART_OF: self.set_name, labels.SET_REPLICA: str(index)}
        return {
            name: thing for name, thing in found.items() if wanted.items() <= thing.metadata.labels.items()
        }

    def _deleted_pods(self, lag: int, gangs: Mapping[str, PodGang]) -> frozenset[str]:
        """Pods whose end the operator has been told of, as long as a gang names them."""
        states = self.api.past.get("Pod", [{}])
        seen = states[self.awake_since : max(len(states) - lag, 1)]
        gone = [before.keys() - after.keys() for before, after in pairwise(seen)]
        groups = (group for gang in gangs.values() for group in gang.spec.pod_groups)
        return frozenset().union(*gone) & {ref.name for group in groups for ref in group.pod_references}

    def restart_operator(self) -> None:
        """It forgets what it has seen, and reads everything anew."""
        self.awake_since = len(self.api.past.get("Pod", [{}])) - 1
        self.reports = {}

    # What the operator does.

    def plan(self, index: int = 0, lag: Lag | None = None) -> Plan:
        return plan_replica(self.snapshot(index, lag), self.now)

    def execute(self, plan: Plan, pick: Random | None = None) -> bool:
        """Write a plan, then the statuses. True if every write was done."""
        run = Run(self, plan, pick)
        while run.go_on():
            pass
        self.publish(plan, run.succeeded)
        return run.succeeded

    def publish(self, plan: Plan, all_done: bool = True) -> int:
        """Write the statuses that differ. Says how many did."""
        written = 0
        for status_update in plan.status_updates:
            desired = status_update.desired
            if all_done and hasattr(desired, "observed_generation"):
                desired = replace(desired, observed_generation=status_update.observed_generation)
            if patch := status_patch(status_update.current, desired):
                target = status_update.target
                body = {"metadata": {"resourceVersion": status_update.resource_version}, "status": patch}
                try:
                    self.api.patch(target.kind, target.name, body, status=True, by=OPERATOR)
                except NotFound:
                    continue
                except Conflict:  # it is told on what is true now
                    pass
                written += 1
        return written

    def step(self, index: int = 0) -> Plan:
        """Look, plan, write: one pass of the operator."""
        self.share()
        plan = self.plan(index)
        self.execute(plan)
        return plan

    def share(self) -> None:
        """What the set's own plan makes for all of its replicas."""
        workload, shared = self._whole_set()
        if shared is not None:
            self.execute(Plan(plan_set_claims(workload, keep_owned_claims(shared, workload.metadata.uid))[0]))

    def _whole_set(self) -> tuple[PodCliqueSet, ClaimObjects | None]:
        workload = read("PodCliqueSet", self.api.all("PodCliqueSet")[self.set_name])
        return workload, self.snapshot().shared if workload.spec.template.resource_sharing else None

    def settle(self, index: int = 0, passes: int = 12) -> int:
        """Pass after pass until there is nothing to do. Says how many it took."""
        for number in range(passes):
            self.share()
            plan = self.plan(index)
            done = self.execute(plan)
            if not plan.intents and done and not self.publish(self.plan(index)):
                return number
        raise AssertionError(f"still not settled after {passes} passes: {[i.id for i in plan.intents]}")

    def plan_set(self) -> Plan:
        """The plan for the set as a whole, from the latest pass over each replica."""
        workload, shared = self._whole_set()
        return plan_set(workload, self.reports, self.now, shared=shared)

    def tend(self) -> int:
        """One pass over every replica and over the set. Says how many writes there were."""
        workload = self.api.get("PodCliqueSet", self.set_name)
        written = 0
        for index in range(workload["spec"]["replicas"]):
            plan = self.step(index)
            written += len(plan.intents)
            if plan.summary is not None:
                self.reports[index] = ReplicaReport(workload["metadata"]["generation"], plan.summary)
        plan = self.plan_set()
        self.execute(plan)
        return written + len(plan.intents)

    # What tests ask.

    def pods(self, clique: str = "") -> dict[str, Pod]:
        """The pods by name; those of one clique, if it is named."""
        found = {name: read("Pod", stored) for name, stored in self.api.all("Pod").items()}
        if not clique:
            return found
        return {name: pod for name, pod in found.items() if pod.metadata.labels.get(labels.CLIQUE) == clique}

    def references(self, gang: str) -> dict[str, list[str]]:
        """Who is in a gang, clique by clique."""
        groups = self.api.get("PodGang", gang)["spec"]["podgroups"]
        return {group["name"]: [ref["name"] for ref in group["podReferences"]] for group in groups}

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.api.patch(kind, name, {"spec": {"replicas": replicas}})


class Run:
    """A plan under way: one write after another, in any order that the dependencies allow."""

    def __init__(self, sim: Simulator, plan: Plan, pick: Random | None = None) -> None:
        self._world, self._pick = sim, pick
        self._deferred = DeferredValues()
        self._graph = DependencyGraph(plan.intents)
        self.succeeded = True

    def go_on(self) -> bool:
        """Do the next write; what depends on one that was refused is left out. False: nothing is left."""
        step = self._graph.pop_ready() if self._pick is None else self._any_step()
        if step is None:
            return False
        self.land(step)
        return True

    def in_flight(self) -> list[IntentStep]:
        """All writes that may go now, sent and not answered: let them `land` when it is time."""
        return list(iter(self._graph.pop_ready, None))

    def land(self, step: IntentStep) -> None:
        """The server does the write, or refuses it."""
        try:
            self._deferred.uids[step.id] = self._send(step.intent)
        except Refused:
            self.succeeded = False
            list(self._graph.skip_dependents(step))
        else:
            self._graph.mark_done(step)

    def _any_step(self) -> Any:
        ready = []
        while (step := self._graph.pop_ready()) is not None:
            ready.append(step)
        if not ready:
            return None
        chosen = ready.pop(self._pick.randrange(len(ready))) if self._pick else ready.pop()
        for step in ready:
            self._graph._ready[step.priority].append(step)
        return chosen

    def _send(self, intent: Intent) -> str:
        if isinstance(intent, DeleteCollection):
            raise TypeError("a replica's plan deletes what it has seen, one by one")
        api, kind, name = self._world.api, intent.target.kind, self._deferred.resolve(intent.target.name)
        if isinstance(intent, Delete):
            with suppress(NotFound):
                api.delete(kind, name, intent.uid, intent.resource_version, by=OPERATOR)
            return intent.uid
        body = msgspec.json.decode(self._deferred.encode(intent.body))
        if isinstance(intent, Create):
            if intent.may_exist and name in api.all(kind):
                return ""
            return str(api.create(body, by=OPERATOR)["metadata"]["uid"])
        status = isinstance(intent, Status)
        return str(api.patch(kind, name, body, status=status, by=OPERATOR)["metadata"]["uid"])


def settled(body: Body) -> Simulator:
    """A set all of whose replicas have come to rest."""
    sim = Simulator(body)
    for index in range(body["spec"]["replicas"]):
        sim.settle(index)
    return sim
