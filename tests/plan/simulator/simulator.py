"""A namespace with one set: plans are made from it and executed on it, and other actors change it.

Snapshots are built as the operator builds them, by labels, and decoded from JSON by the real types. With
`lag` a snapshot has older states, each kind with a lag of its own, like informer caches.
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

from grove.api.intents import Create, Delete, Intent, Status
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
from grove.plan.gang.scheduler_selection import scheduler_of
from grove.plan.model import Plan, ReplicaReport
from grove.plan.ownership.ownership import keep_owned_claims
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica
from grove.plan.resource_claims import plan_set_claims
from grove.plan.snapshot import ClaimObjects, NamespacedName, PriorityLookup, SetSnapshot, Snapshot
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
"""How many changes a kind is behind; 0 is current."""


@lru_cache(maxsize=20_000)
def read(kind: str, stored: bytes) -> Any:
    """An object as the operator reads it."""
    return msgspec.json.decode(stored, type=KINDS[kind])


class Simulator:
    """The API server, the set, and the memory of the operator."""

    def __init__(self, workload: Body, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.api = ApiServer(lambda: rfc3339(self.now))
        self.set_name: str = workload["metadata"]["name"]
        self.api.create(workload)
        self.binding: PartialObjectMetadata | None = PartialObjectMetadata(ObjectMeta(name="grove.io:pcs:wl"))
        self.init_image = "example.com/initc:1"
        self.start_order = True
        self.topology: ResolvedTopology | None = None
        """The topology that the set refers to; None while constraints are disabled."""
        self.reports: dict[int, ReplicaReport] = {}
        """The latest reports of the replicas."""
        self.scheduler: SchedulerBackend | None = None
        self.backends: SchedulerBackends | None = None
        """The backends that the operator selects the scheduler from."""
        self.claim_templates: dict[NamespacedName, ResourceClaimTemplateObject] = {}
        self.claims_visible = True
        self.kind_problem = ""
        self.priority = PriorityLookup()
        self.observed_from = 0
        """The number of pod changes before the operator started, which it has not observed."""

    def copy(self) -> Simulator:
        """An independent copy."""
        twin = copy(self)
        twin.api = self.api.copy(lambda: rfc3339(twin.now))
        twin.reports = dict(self.reports)
        return twin

    # Observation.

    def snapshot(self, index: int = 0, lag: Lag | None = None) -> Snapshot:
        """One replica of the set, from the operator's caches."""
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
            start_order=self.start_order,
            topology=self.topology,
            scheduler=self.backends.of(asked) if self.backends else self.scheduler,
            scheduler_objects=seen["PodGroup"],
            shared=self._shared(workload, index, seen, (lag or {}).get(CLAIM, 0)),
            kind_problem=self.kind_problem,
            priority=self.priority,
        )

    def _shared(self, workload: PodCliqueSet, index: int, seen: Mapping[str, Any], lag: int) -> ClaimObjects:
        claims = {name: read(CLAIM, stored) for name, stored in self._past(CLAIM, lag).items()}
        owners = {*seen["PodClique"], *seen["PodCliqueScalingGroup"]}
        found = claims_in_sight(claims, workload, index, owners)
        return (
            ClaimObjects(found, self.claim_templates) if self.claims_visible else ClaimObjects(visible=False)
        )

    def _named_like_parts(self, workload: PodCliqueSet, index: int, lag: Lag | None) -> dict[str, Any]:
        """Autoscalers that upstream created: they have no replica label and are found by name."""
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
        """Pods whose deletion the operator has observed, while a gang names them."""
        states = self.api.past.get("Pod", [{}])
        seen = states[self.observed_from : max(len(states) - lag, 1)]
        gone = [before.keys() - after.keys() for before, after in pairwise(seen)]
        groups = (group for gang in gangs.values() for group in gang.spec.pod_groups)
        return frozenset().union(*gone) & {ref.name for group in groups for ref in group.pod_references}

    def restart_operator(self) -> None:
        """Forgets what was observed and lists everything again."""
        self.observed_from = len(self.api.past.get("Pod", [{}])) - 1
        self.reports = {}

    # Reconcile.

    def plan(self, index: int = 0, lag: Lag | None = None) -> Plan:
        return plan_replica(self.snapshot(index, lag), self.now)

    def execute(self, plan: Plan, pick: Random | None = None) -> bool:
        """Executes a plan, then publishes statuses. True if every write succeeded."""
        run = Run(self, plan, pick)
        while run.go_on():
            pass
        self.publish(plan, run.succeeded)
        return run.succeeded

    def publish(self, plan: Plan, all_done: bool = True) -> int:
        """Writes the statuses that differ. Returns how many did."""
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
                except Conflict:  # the status is computed again from the latest version
                    pass
                written += 1
        return written

    def step(self, index: int = 0) -> Plan:
        """One reconcile of a replica."""
        self.share()
        plan = self.plan(index)
        self.execute(plan)
        return plan

    def share(self) -> None:
        """Creates what the plan of the set creates for all of its replicas."""
        workload, shared = self._whole_set()
        if shared is not None:
            self.execute(Plan(plan_set_claims(workload, keep_owned_claims(shared, workload.metadata.uid))[0]))

    def _whole_set(self) -> tuple[PodCliqueSet, ClaimObjects | None]:
        workload = read("PodCliqueSet", self.api.all("PodCliqueSet")[self.set_name])
        return workload, self.snapshot().shared if workload.spec.template.resource_sharing else None

    def settle(self, index: int = 0, passes: int = 12) -> int:
        """Reconciles until there is nothing to do. Returns how many passes it took."""
        for number in range(passes):
            self.share()
            plan = self.plan(index)
            done = self.execute(plan)
            if not plan.intents and done and not self.publish(self.plan(index)):
                return number
        raise AssertionError(f"still not settled after {passes} passes: {[i.id for i in plan.intents]}")

    def plan_set(self) -> Plan:
        """The plan for the set as a whole, from the latest reports of its replicas."""
        workload, shared = self._whole_set()
        return plan_set(SetSnapshot(workload, self.reports, shared=shared), self.now)

    def reconcile_all(self) -> int:
        """Reconciles every replica and the set once. Returns the number of writes."""
        workload = self.api.get("PodCliqueSet", self.set_name)
        written = 0
        for index in range(workload["spec"]["replicas"]):
            plan = self.step(index)
            written += len(plan.intents)
            if plan.report is not None:
                self.reports[index] = ReplicaReport(workload["metadata"]["generation"], plan.report)
        plan = self.plan_set()
        self.execute(plan)
        return written + len(plan.intents)

    # Lookups.

    def pods(self, clique: str = "") -> dict[str, Pod]:
        """The pods by name; those of one clique if it is given."""
        found = {name: read("Pod", stored) for name, stored in self.api.all("Pod").items()}
        if not clique:
            return found
        return {name: pod for name, pod in found.items() if pod.metadata.labels.get(labels.CLIQUE) == clique}

    def references(self, gang: str) -> dict[str, list[str]]:
        """The pod references of a gang, by clique."""
        groups = self.api.get("PodGang", gang)["spec"]["podgroups"]
        return {group["name"]: [ref["name"] for ref in group["podReferences"]] for group in groups}

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.api.patch(kind, name, {"spec": {"replicas": replicas}})


class Run:
    """A plan that is being executed: one write after another, in any order that the dependencies allow."""

    def __init__(self, sim: Simulator, plan: Plan, pick: Random | None = None) -> None:
        self._sim, self._pick = sim, pick
        self._deferred = DeferredValues()
        self._graph = DependencyGraph(plan.intents)
        self.succeeded = True

    def go_on(self) -> bool:
        """Does the next write; writes that depend on a refused one are skipped. False: nothing is left."""
        step = self._graph.pop_ready() if self._pick is None else self._any_step()
        if step is None:
            return False
        self.land(step)
        return True

    def in_flight(self) -> list[IntentStep]:
        """All writes that are ready, sent and without a reply: complete them with `land`."""
        return list(iter(self._graph.pop_ready, None))

    def land(self, step: IntentStep) -> None:
        """The server accepts or refuses the write."""
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
        api, kind, name = self._sim.api, intent.target.kind, self._deferred.resolve(intent.target.name)
        if isinstance(intent, Delete):
            with suppress(NotFound):
                api.delete(kind, name, intent.uid, by=OPERATOR)
            return intent.uid
        body = msgspec.json.decode(self._deferred.encode(intent.body))
        if isinstance(intent, Create):
            if intent.may_exist and name in api.all(kind):
                return ""
            return str(api.create(body, by=OPERATOR)["metadata"]["uid"])
        status = isinstance(intent, Status) or intent.subresource == "status"
        return str(api.patch(kind, name, body, status=status, by=OPERATOR)["metadata"]["uid"])


def settled(body: Body) -> Simulator:
    """A set with all replicas converged."""
    sim = Simulator(body)
    for index in range(body["spec"]["replicas"]):
        sim.settle(index)
    return sim
