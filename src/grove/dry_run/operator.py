"""The operator in memory: the observers, plans and rounds of placement of the real one, over caches that are
filled from the state of a cluster. Their writes go to memory."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.cache_loading import list_nodes, load_caches
from grove.cluster_state.model import ClusterState, UnreadKind
from grove.cluster_state.operator_setup import OperatorSetup, new_caches
from grove.dry_run.memory_cluster import AppliedWrite, MemoryCluster
from grove.operator.caches.registry import BY_NAMESPACE, BY_REPLICA, BY_SET
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey, replica_of
from grove.operator.observers.claim_sources import ClaimSourcesObserver
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.fabric import FabricLookup
from grove.operator.observers.placement import PlacementState
from grove.operator.observers.priority_classes import PriorityClassLookup
from grove.operator.observers.schedulers import SchedulerLookup
from grove.operator.observers.topology import TopologyLookup
from grove.operator.observers.workload import Observer
from grove.plan.desired.expand import Gang
from grove.plan.desired.limits import too_many_pods
from grove.plan.model import Plan, ReplicaReport
from grove.plan.placement.assignment import Assignment, Decision, GangName, PodSlot
from grove.plan.placement.decision import reservations
from grove.plan.placement.demand import Demand
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, RoundResult
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica
from grove.plan.scale_in import has_objects, plan_scale_in
from grove.plan.snapshot import SetSnapshot, Snapshot
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kube import Kube
from grove.topology.placement.model import PODS

T = TypeVar("T")

INIT_IMAGE = "grove-initc"
"""Stands for the image of the init container: which one it is changes no decision."""


class DecidedGang(Struct, frozen=True):
    """A gang that asked for nodes, and what was decided."""

    demand: Demand
    decision: Decision


class ExistingGangs(Struct, frozen=True):
    """The gangs of a cluster that wait for nodes, with what an operator has decided on them."""

    demands: Mapping[ReplicaKey, tuple[Demand, ...]]
    states: Mapping[GangName, GangState]
    decided: Mapping[GangName, DecidedGang]
    first_decided: Mapping[GangName, DecidedGang]
    nominated: tuple[Demand, ...]
    """Those that a running operator has nominated as a whole."""
    unplanned: Mapping[SetKey, str]

    @property
    def pods(self) -> int:
        """How many pods wait."""
        return sum(len(demand.pods) for demands in self.demands.values() for demand in demands)


class DryOperator:
    """One operator that has just become the leader of a cluster in which nothing else moves. Must be used in
    a running event loop, as the caches are."""

    def __init__(
        self, state: ClusterState, setup: OperatorSetup, now: float, *, redacted: bool = False
    ) -> None:
        self.now = now
        self.caches = caches = new_caches(setup)
        self.state = load_caches(state, caches)
        """The state that it reads, with the names of objects that it skips."""
        assert caches.cluster_pods is not None
        assert caches.devices is not None
        assert caches.volumes is not None
        self.memory = MemoryCluster(state, caches, redacted=redacted)
        self.states = KeyStates()
        self.view = ClusterView(caches.nodes, caches.cluster_pods, caches.devices)
        self.fabrics = FabricLookup(caches)
        self.topologies = TopologyLookup(
            caches, enabled=setup.configuration.topology_aware_scheduling.enabled
        )
        self._default = _default_backend(setup)
        self._placing: dict[str, SchedulerBackend] = {}
        self._claim_sources = ClaimSourcesObserver(caches, self.view, caches.volumes)
        # Nothing else moves: a gang that does not fit is reported, and neither held for nor released in part.
        self.placement = PlacementState(
            self.view,
            has_quota=lambda namespace: bool(caches.quotas.by_index(BY_NAMESPACE, namespace)),
            priority_class=caches.priority_class,
            scheduler=lambda: None,
            settings=replace(self._default.placement, hold_after=math.inf, visible_after=None),
            clock=lambda: self.now,
        )
        self.observer = Observer(
            caches,
            self.states,
            self.placement,
            INIT_IMAGE,
            self.topologies,
            SchedulerLookup(caches, setup.backends),
            self.fabrics,
            PriorityClassLookup(caches, lambda: self.now),
            self._claim_sources,
        )
        self.decided: dict[GangName, DecidedGang] = {}
        """The latest decision on each gang that asked."""
        self.first_decided: dict[GangName, DecidedGang] = {}
        """The first one. It is decided again, for example, when more of its pods find a place."""
        self.published = False
        """Whether a status was written since this was last reset."""
        self.unplanned: dict[SetKey, str] = {}
        """Sets of which a replica could not be planned, and why: the templates of users may be wrong."""
        self._reports: dict[SetKey, dict[int, ReplicaReport]] = {}

    def decide_existing(self) -> ExistingGangs:
        """Plan all replicas that wait for nodes, and decide on their gangs: they compete with what is planned
        later. Gangs whose pods are nominated keep their nodes."""
        demands: dict[ReplicaKey, tuple[Demand, ...]] = {}
        nominated: list[Demand] = []
        for key in sorted(self._waiting_replicas()):
            plan = self.attempt(key, partial(self.plan_replica, key))
            if plan is None:
                continue
            reserved = [demand for demand in plan.placement_demands if self._reserve_nominated(demand)]
            nominated += reserved
            demands[key] = tuple(each for each in plan.placement_demands if each not in reserved)
            self.placement.update(key, demands[key])
        self.run_rounds()
        return ExistingGangs(
            demands,
            self.placement.states(),
            dict(self.decided),
            dict(self.first_decided),
            tuple(nominated),
            dict(self.unplanned),
        )

    def take_over(self, existing: ExistingGangs) -> None:
        """Take over what another operator has decided on the same cluster: to decide takes long for many
        gangs."""
        for demand in existing.nominated:
            self._reserve_nominated(demand)
        for key, demands in existing.demands.items():
            self.placement.update(key, demands)
        if self.caches.nodes.needs_list:
            list_nodes(self.state, self.caches)
        self.placement.record(RoundResult(existing.states))
        self.decided |= existing.decided
        self.first_decided |= existing.first_decided
        self.unplanned |= existing.unplanned
        self.run_rounds()

    def attempt(self, key: ReplicaKey, compute: Callable[[], T]) -> T | None:
        """What is computed for a replica that exists; None if that fails, for example because of a quantity
        that is none. One set of one tenant must not hide all others."""
        try:
            return compute()
        except Exception as error:
            self.unplanned[SetKey(key.namespace, key.set_name)] = str(error) or type(error).__name__
            return None

    def unplanned_sets(self) -> tuple[UnreadKind, ...]:
        """The sets that could not be planned, for a report of what was not seen."""
        return tuple(
            UnreadKind(
                f"PodCliqueSet {key.namespace}/{key.name}", f"it cannot be planned ({why}): correct it"
            )
            for key, why in sorted(self.unplanned.items())
        )

    def use_topologies(self, names: Iterable[str]) -> None:
        """Sort the nodes by the levels of these topologies, as an operator has that has placed gangs with
        them. Gangs without a topology then use these indexes, too, which changes the order of their nodes."""
        for name in names:
            found = self.caches.topologies.get("", name) or self.caches.topology_bindings.get("", name)
            levels = tuple(level.key for level in found.spec.levels) if found is not None else ()
            if levels and not self.view.require(levels):
                list_nodes(self.state, self.caches)
            if levels:
                self.placement.capacity.domains(levels)

    def _waiting_replicas(self) -> set[ReplicaKey]:
        """The replicas that may ask for nodes: a pod that a gang refers to has none, or does not exist."""
        bound = {
            (pod.metadata.namespace, pod.metadata.name) for pod in self.caches.pods if pod.spec.node_name
        }
        found = {
            key
            for gang in self.caches.gangs
            if (key := replica_of(gang.metadata)) is not None
            and any(
                (reference.namespace or key.namespace, reference.name) not in bound
                for group in gang.spec.pod_groups
                for reference in group.pod_references
            )
        }
        return found | set(self._new_replicas())

    def _new_replicas(self) -> Iterator[ReplicaKey]:
        for workload in self.caches.sets:
            meta = workload.metadata
            for index in range(workload.spec.replicas):
                key = ReplicaKey(meta.namespace, meta.name, index)
                if not self.caches.gangs.by_index(BY_REPLICA, key):
                    yield key

    def _reserve_nominated(self, demand: Demand) -> bool:
        """Reserve the nodes of a gang that a running operator has nominated as a whole. Returns whether it
        is."""
        pods = {pod.slot: self.view.pod(demand.gang.namespace, pod.name) for pod in demand.unbound}
        nodes = {slot: pod.nominated_node for slot, pod in pods.items() if pod is not None}
        if not pods or len(nodes) < len(pods) or not all(nodes.values()):
            return False
        self.placement.capacity.reserve(demand.gang, reservations(demand, {}, nodes))
        return True

    def snapshot(self, key: ReplicaKey) -> Snapshot | None:
        """A replica as its plan reads it. Gangs that a scheduler would choose nodes for on its own are placed
        as well: that shows whether there is a place."""
        snapshot = self.observer.replica(key)
        if snapshot is None:
            return None
        backend = snapshot.scheduler or self._default
        placed = self._placing.get(backend.name)
        if placed is None:
            placed = self._placing[backend.name] = placing_every_gang(backend)
        sources = self._claim_sources.of(snapshot.workload, snapshot.domains)
        assert snapshot.placements is not None
        return replace(snapshot, scheduler=placed, placements=replace(snapshot.placements, sources=sources))

    def plan_replica(self, key: ReplicaKey) -> Plan:
        """The plan of a replica. Labels of nodes that it requires are listed."""
        snapshot = self.snapshot(key)
        if self.caches.nodes.needs_list:
            list_nodes(self.state, self.caches)
            snapshot = self.snapshot(key)
        return plan_replica(snapshot, self.now) if snapshot is not None else Plan()

    def reconcile_replica(self, key: ReplicaKey, *, apply: bool = True) -> list[AppliedWrite]:
        """Plan a replica, report its demands, and apply its writes."""
        return self.apply_plan(key, self.plan_replica(key), apply=apply)

    def apply_plan(self, key: ReplicaKey, plan: Plan, *, apply: bool = True) -> list[AppliedWrite]:
        """Report the demands of a replica's plan, and apply its writes."""
        self.placement.update(key, plan.placement_demands, complete=plan.demands_complete)
        self.report(key, plan)
        if not apply:
            return []
        done = self.memory.apply(plan.intents, self.now)
        self.published |= self.memory.publish(plan.status_updates)
        return done

    def report(self, key: ReplicaKey, plan: Plan) -> None:
        """Record what the plan of a replica reports to its set."""
        set_key = SetKey(key.namespace, key.set_name)
        workload = self.caches.sets.get(*set_key)
        if plan.report is not None and workload is not None:
            reports = self._reports.setdefault(set_key, {})
            reports[key.replica] = ReplicaReport(workload.metadata.generation, plan.report)

    def reconcile_set(self, key: SetKey) -> list[AppliedWrite]:
        """Plan a set as a whole, and apply its writes: RBAC objects, shared claims, the order of an update,
        and the deletion of surplus replicas."""
        workload = self.caches.sets.get(*key)
        if workload is None:
            return []
        excess = self.caches.sizes.excess(workload)
        snapshot = SetSnapshot(
            workload,
            self._reports.get(key, {}),
            access=self.caches.access(key),
            topology=self.topologies.of(workload),
            fallback_topologies=self.topologies.of_fallbacks(workload),
            shared=self.observer.shared_claims.of_set(workload),
            priority=self.observer.priority_classes.of(workload),
            too_many=too_many_pods(excess.requested, excess.limit) if excess is not None else None,
        )
        plan = plan_set(snapshot, self.now)
        done = self.memory.apply(plan.intents, self.now)
        self.published |= self.memory.publish(plan.status_updates)
        surplus = tuple(self._surplus(workload))
        return done + (
            self.memory.apply(plan_scale_in(surplus, self.now).intents, self.now) if surplus else []
        )

    def _surplus(self, workload: PodCliqueSet) -> Iterator[Snapshot]:
        key_of_set = SetKey(workload.metadata.namespace, workload.metadata.name)
        keys = {
            key
            for cache in self.caches.replica_objects
            for found in cache.by_index(BY_SET, key_of_set)
            if (key := replica_of(found.metadata)) is not None and key.replica >= workload.spec.replicas
        }
        for key in sorted(keys):
            snapshot = self.observer.replica(key)
            if snapshot is not None and has_objects(snapshot):
                yield snapshot

    def run_rounds(self) -> None:
        """Run rounds of placement until nothing changes, as the placement key is reconciled."""
        for _ in range(timing.DRY_ROUNDS):
            changes = self.placement.changes()
            if self.caches.nodes.needs_list:
                list_nodes(self.state, self.caches)
                if changes is None or not changes.gangs:
                    continue
            if changes is None:
                return
            # No gang of other users waits for this process.
            changes = replace(changes, work=sys.maxsize)
            result = run_round(self.placement.capacity, changes, self.now)
            for gang, state in result.changed.items():
                if state.decision is not None:
                    self.decided[gang] = DecidedGang(state.demand, state.decision)
                    self.first_decided.setdefault(gang, self.decided[gang])
            self.placement.record(result)
            if not result.changed and not self.caches.nodes.needs_list:
                return

    def available_replicas(self, key: SetKey) -> int | None:
        """How many replicas of a set are available by their latest reports; None: not all have reported."""
        workload, reports = self.caches.sets.get(*key), self._reports.get(key, {})
        if workload is None or not all(index in reports for index in range(workload.spec.replicas)):
            return None
        return sum(reports[index].summary.available for index in range(workload.spec.replicas))

    def is_bound(self, key: ReplicaKey, gang: Gang) -> bool:
        """Whether all pods of a gang have nodes."""
        cliques = {clique.name: clique.replicas for clique in gang.cliques}
        bound = Counter(
            pod.metadata.labels.get(labels.CLIQUE, "")
            for pod in self.caches.pods.by_index(BY_REPLICA, key)
            if pod.spec.node_name
        )
        return all(bound[name] >= count for name, count in cliques.items())

    def decisions(self, keys: Iterable[ReplicaKey]) -> dict[GangName, Decision]:
        """What is decided at present for the gangs of replicas."""
        return {
            GangName(key.namespace, name): decision
            for key in keys
            for name, decision in self.placement.of(key).decisions.items()
        }

    def assigned_nodes(self, key: ReplicaKey) -> dict[PodSlot, str]:
        """The nodes that are chosen for the pods of a replica."""
        return {
            slot: node
            for decision in self.placement.of(key).decisions.values()
            for slot, node in decision.nodes.items()
        }

    def free_choice(self, key: ReplicaKey) -> frozenset[PodSlot]:
        """The pods of a replica for which the scheduler may choose any node of their domain."""
        found = self.placement.of(key).decisions.values()
        free = (each for each in found if isinstance(each, Assignment) and not each.nominated)
        return frozenset(slot for each in free for slot in each.nodes)

    def least_used_node(self, pod: Pod) -> str:
        """The node that the scheduler is likely to choose for a pod: of those with room, the one with the
        fewest pods."""
        found = self.view.pod(pod.metadata.namespace, pod.metadata.name)
        if found is None or found.profile.shape is None:
            return ""
        names = (node.metadata.name for node in self.caches.nodes)
        fitting = [
            name
            for name in names
            if self.view.could_go(found, name) and self.view.has_room(name, found.profile.requests)
        ]
        return min(fitting, key=lambda name: (self._pods_on(name), name), default="")

    def _pods_on(self, node: str) -> int:
        return sum(used.get(PODS, 0) for used in self.view.use_by_priority(node).values())


def _default_backend(setup: OperatorSetup) -> Kube:
    """The backend of the default scheduler."""
    return next(each for each in setup.backends.by_name.values() if isinstance(each, Kube))


def placing_every_gang(backend: SchedulerBackend) -> SchedulerBackend:
    """The same backend, where the operator chooses the nodes of every gang."""
    placing = copy(backend)
    places = {"places": lambda _self, _request: True, "tries_fallbacks": True}
    placing.__class__ = type(type(backend).__name__, (type(backend),), places)
    placing.tries_fallbacks = True
    return placing
