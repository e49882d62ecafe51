"""What happens with one set: its plans are applied in memory, its pods are bound where placement chose and
become ready at once, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.intents import Create, Intent
from grove.api.naming import labels
from grove.api.types.pod import Pod, read_template
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dry_run.memory_cluster import AppliedWrite
from grove.dry_run.model import ObjectCount, UpdatePlan
from grove.dry_run.operator import DryOperator
from grove.fabrics.provider import Domain
from grove.kube.client.resource import PODS, RESOURCE_CLAIM_TEMPLATES
from grove.local.standins.dra.objects import claim_template
from grove.operator.caches.registry import BY_REPLICA
from grove.operator.keys import ReplicaKey, SetKey
from grove.plan.desired.expand import Gang, expand
from grove.plan.fabric.planner import plan_domain
from grove.plan.members import pod_state
from grove.plan.model import Plan, UserError
from grove.plan.placement.assignment import Assignment, GangName, PodSlot
from grove.plan.timestamps import rfc3339

Body = dict[str, Any]
_POD = f"{PODS.api_version}/{PODS.kind}"
_TEMPLATE = f"{RESOURCE_CLAIM_TEMPLATES.api_version}/{RESOURCE_CLAIM_TEMPLATES.kind}"


NodeChoice = Callable[[Pod], str]
"""The node of a pod; empty if there is none for it."""


class SetOutcome(Struct, frozen=True):
    """What was written for a set, in order, and what an update did."""

    writes: tuple[AppliedWrite, ...]
    errors: tuple[UserError, ...]
    domains: tuple[str, ...]
    update: UpdatePlan | None = None


class SetRun:
    """The run of one set, which must be in the caches of the operator. `choose_node`: the node of a pod for
    which the scheduler may choose any node of its domain; by default the one that placement chose."""

    def __init__(
        self, operator: DryOperator, key: SetKey, existed: bool, choose_node: NodeChoice | None = None
    ) -> None:
        self._operator, self._key, self._existed = operator, key, existed
        self._choose_node = choose_node
        self._writes: list[AppliedWrite] = []
        self._errors: dict[UserError, None] = {}
        self._domains: list[str] = []
        self._replaced: list[str] = []
        self._lowest: int | None = None
        self._start = operator.now
        self._is_independent = not existed and not any(gang.base_gang for _, gang in self.gangs())

    @property
    def has_followers(self) -> bool:
        """Whether gangs wait for others to be bound: the nodes of those decide about them."""
        return not self._is_independent

    @property
    def workload(self) -> PodCliqueSet:
        """The set as it is stored by now."""
        found = self._operator.caches.sets.get(*self._key)
        assert found is not None
        return found

    @property
    def replicas(self) -> list[ReplicaKey]:
        """The keys of its replicas."""
        return [ReplicaKey(*self._key, index) for index in range(self.workload.spec.replicas)]

    def gangs(self) -> Iterator[tuple[ReplicaKey, Gang]]:
        """The gangs that the set should have."""
        for key in self.replicas:
            snapshot = self._operator.observer.replica(key)
            assert snapshot is not None
            groups = {name: each.spec.replicas for name, each in snapshot.groups.items()}
            cliques = {name: each.spec.replicas for name, each in snapshot.cliques.items()}
            layout = expand(snapshot.workload, key.replica, groups, cliques, snapshot.domains, None)
            yield from ((key, gang) for gang in layout.gangs)

    def schedulers(self) -> list[str]:
        """The schedulers that its pods name."""
        templates = (each.spec.pod_spec for each in self.workload.spec.template.cliques)
        return sorted({read_template(each).scheduler_name for each in templates})

    def placed_replicas(self) -> int:
        """How many replicas have a place for all of their gangs, or are bound already."""
        refused = {key for key, gang in self.gangs() if not self._is_placed(key, gang)}
        return sum(key not in refused for key in self.replicas)

    def _is_placed(self, key: ReplicaKey, gang: Gang) -> bool:
        found = self._operator.decided.get(GangName(key.namespace, gang.name))
        if found is not None:
            return isinstance(found.decision, Assignment)
        return self._operator.is_bound(key, gang)

    def run(self) -> SetOutcome:
        """Follow the set until nothing changes."""
        self._prepare()
        complete = self._decide_new() or self._follow()
        for after in sorted(set(self._fallback_times())):
            self._operator.now = self._start + after
            self._operator.run_rounds()
            complete = complete and (self._is_independent or self._follow())
        update = None
        if self._replaced:
            lowest = self._lowest if self._lowest is not None else 0
            update = UpdatePlan(
                tuple(dict.fromkeys(self._replaced)), self.workload.spec.replicas, lowest, complete
            )
        return SetOutcome(tuple(self._writes), tuple(self._errors), tuple(self._domains), update)

    def _prepare(self) -> None:
        """What exists before the first gang asks for nodes: RBAC objects, shared claims, fabric domains."""
        operator = self._operator
        self._writes += operator.reconcile_set(self._key)
        for domain in dict.fromkeys(operator.fabrics.keys_of(self.workload)):
            for _ in range(2):  # created, and then owned
                snapshot = operator.fabrics.snapshot(domain)
                if snapshot is not None:
                    self._writes += operator.memory.apply(
                        plan_domain(snapshot, operator.now).intents, operator.now
                    )
            found = operator.caches.domains[domain.vendor].get(domain.namespace, domain.name)
            if found is not None:
                self._domains.append(domain.name)
                self._add_claim_template(domain.vendor, found)

    def _add_claim_template(self, vendor: str, domain: Domain) -> None:
        """The template that the driver creates for a domain."""
        operator, meta = self._operator, domain.metadata
        name = operator.caches.fabrics.of(vendor).template_name(domain)
        if operator.memory.get(_TEMPLATE, meta.namespace, name) is None:
            body = claim_template(name, meta.namespace, meta.uid, "Single")
            kind = {"apiVersion": RESOURCE_CLAIM_TEMPLATES.api_version, "kind": RESOURCE_CLAIM_TEMPLATES.kind}
            operator.memory.put({**kind, **body}, operator.now)

    def _fallback_times(self) -> Iterator[float]:
        """After how many seconds gangs that wait are tried with another constraint."""
        for gang, decision in self._operator.decisions(self.replicas).items():
            if not isinstance(decision, Assignment):
                yield from (each.after for each in self._operator.decided[gang].demand.fallbacks)

    def _decide_new(self) -> bool:
        """Decide on the gangs of a set of which nothing exists and whose gangs do not wait for each other:
        then the first decisions are the last, and nothing needs to be bound. Returns whether that is so."""
        operator = self._operator
        if not self._is_independent:
            return False
        for key in self.replicas:
            operator.reconcile_replica(key, apply=False)
        operator.run_rounds()
        for key in self.replicas:
            plan = operator.plan_replica(key)
            self._errors |= dict.fromkeys(plan.errors)
            self._writes += created(plan.intents)
        return True

    def _follow(self) -> bool:
        """Reconcile the set until nothing changes. Returns whether that was reached."""
        for number in range(timing.DRY_PASSES):
            before = dict(self._operator.decisions(self.replicas))
            changed = self._reconcile()
            self._operator.run_rounds()
            changed |= self._run_pods()
            changed |= self._operator.decisions(self.replicas) != before
            if number and self._existed:
                self._count_available()
            self._operator.now += 1.0
            if not changed:
                return True
        return False

    def _reconcile(self) -> bool:
        operator, written = self._operator, list[AppliedWrite]()
        operator.published = False
        for key in self.replicas:
            plan = operator.plan_replica(key)
            self._errors |= dict.fromkeys(plan.errors)
            written += self._applied(key, plan)
        written += operator.reconcile_set(self._key)
        self._writes += written
        return bool(written) or operator.published

    def _applied(self, key: ReplicaKey, plan: Plan) -> list[AppliedWrite]:
        written = self._operator.apply_plan(key, plan)
        deleted = [each for each in written if each.verb == "delete" and each.kind == "Pod"]
        if self._existed and deleted:
            self._replaced += map(_unit, deleted)
            self._operator.report(key, self._operator.plan_replica(key))  # before successors become ready
            self._count_available()
        return written

    def _run_pods(self) -> bool:
        """Bind the pods that are not gated to the nodes that were chosen for them; they become ready."""
        bound = False
        for key in self.replicas:
            nodes, free = self._operator.assigned_nodes(key), self._operator.free_choice(key)
            for pod in self._operator.caches.pods.by_index(BY_REPLICA, key):
                if pod.spec.node_name or pod.spec.scheduling_gates or pod_state.terminating(pod):
                    continue
                slot = _slot(pod)
                chosen = self._choose_node(pod) if self._choose_node is not None and slot in free else ""
                if node := chosen or nodes.get(slot):
                    self._bind(pod, node)
                    bound = True
        return bound

    def _bind(self, pod: Pod, node: str) -> None:
        operator, meta = self._operator, pod.metadata
        body = operator.memory.get(_POD, meta.namespace, meta.name)
        assert body is not None
        at = rfc3339(operator.now)
        conditions = [
            {"type": each, "status": "True", "lastTransitionTime": at} for each in ("PodScheduled", "Ready")
        ]
        operator.memory.set_pod(
            {
                **body,
                "spec": {**body["spec"], "nodeName": node},
                "status": {"phase": "Running", "conditions": conditions},
            }
        )

    def _count_available(self) -> None:
        available = self._operator.available_replicas(self._key)
        if available is not None:
            self._lowest = available if self._lowest is None else min(self._lowest, available)


def _slot(pod: Pod) -> PodSlot:
    return PodSlot(pod.metadata.labels.get(labels.CLIQUE, ""), pod_state.index_of(pod) or 0)


def _unit(write: AppliedWrite) -> str:
    """The unit of an update that a pod belongs to: its group replica, or the pod itself."""
    group, replica = write.labels.get(labels.GROUP), write.labels.get(labels.GROUP_REPLICA)
    return f"{group}-{replica}" if group and replica is not None else write.name


def created(intents: Iterable[Intent]) -> Iterator[AppliedWrite]:
    """The objects that a plan creates. The names of pods are known only once their cliques exist."""
    for intent in intents:
        if isinstance(intent, Create) and not intent.dry_run:
            target = intent.target
            metadata = intent.body.get("metadata", {}) if isinstance(intent.body, Mapping) else {}
            given = metadata.get("labels") or {}
            name = str.__str__(target.name)
            if target.kind == PODS.kind:
                name = f"{given.get(labels.CLIQUE, '')}-{name}"
            yield AppliedWrite("create", target.kind, target.namespace, name, given)


def object_counts(writes: Iterable[AppliedWrite]) -> tuple[ObjectCount, ...]:
    """The writes by kind. An object that is created and changed is created; one that is created and deleted,
    as the successor of a replaced pod may be, is left out."""
    found: dict[str, dict[str, dict[str, AppliedWrite]]] = {}
    for write in (each for each in writes if each.visible):
        by_verb = found.setdefault(write.kind, {"create": {}, "patch": {}, "delete": {}})
        if write.verb == "delete" and write.name in by_verb["create"]:
            del by_verb["create"][write.name]
        elif write.verb in by_verb and (write.verb != "patch" or write.name not in by_verb["create"]):
            by_verb[write.verb][write.name] = write
    counts = (
        ObjectCount(
            kind, *(tuple(map(_shown, verbs[verb].values())) for verb in ("create", "patch", "delete"))
        )
        for kind, verbs in found.items()
    )
    return tuple(each for each in counts if each.created or each.changed or each.deleted)


def _shown(write: AppliedWrite) -> str:
    """The name of an object. That of a new pod ends with what only the operator chooses."""
    clique = write.labels.get(labels.CLIQUE, "")
    if write.kind == PODS.kind and write.verb == "create" and write.name.startswith(f"{clique}-"):
        return f"{clique}-*"
    return write.name
