"""Connects the parts of the leader: the engine, a reconciler for each kind of key, and their watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from grove import timing
from grove.api.configuration.default_scheduler import PlacementSettings
from grove.api.intents import EventRecord
from grove.dynamo.reconcile.events import REPORTER
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import SECRETS
from grove.kube.client.retry import Backoff
from grove.kube.client.transport import Transport
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.operator.caches.dynamo import ADAPTERS, GraphCaches
from grove.operator.caches.registry import BY_NAMESPACE, Caches
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.engine.engine import Engine
from grove.operator.keys import (
    DomainKey,
    GraphKey,
    Key,
    PlacementKey,
    ReplicaKey,
    SetKey,
    TopologyKey,
    replica_of,
)
from grove.operator.observers.claim_sources import ClaimSourcesObserver
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.free_slots import FreeSlotsObserver
from grove.operator.observers.dynamo import GraphObserver
from grove.operator.observers.fabric import FabricLookup
from grove.operator.observers.placement import PlacementState
from grove.operator.observers.priority_classes import PriorityClassLookup
from grove.operator.observers.schedulers import SchedulerLookup
from grove.operator.observers.topology import TopologyLookup
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.dynamo import GraphReconciler
from grove.operator.reconcilers.fabric import DomainReconciler
from grove.operator.reconcilers.placement import PlacementReconciler
from grove.operator.reconcilers.podcliqueset import SetReconciler
from grove.operator.reconcilers.replica import ReplicaReconciler
from grove.operator.reconcilers.replica_reports import ReplicaReports
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.operator.reconcilers.slow_writes import SlowWrites
from grove.operator.reconcilers.topology import TopologyReconciler
from grove.operator.watches.dynamo import graph_watches
from grove.operator.watches.fabric import domain_watches
from grove.operator.watches.node_labels import node_label_watches
from grove.operator.watches.placement import placement_watches
from grove.operator.watches.quotas import quota_watches
from grove.operator.watches.table import register
from grove.operator.watches.topologies import topology_watches
from grove.operator.watches.undecodable import UndecodableObjects
from grove.operator.watches.workloads import workload_watches
from grove.schedulers.registry import SchedulerBackends


class Controller:
    """One engine with all reconcilers."""

    def __init__(
        self,
        caches: Caches,
        executor: Executor,
        emit: Callable[[EventRecord], None],
        *,
        topology_aware: bool = False,
        backends: SchedulerBackends | None = None,
        workers: int = timing.WORKERS,
        backoff: Backoff | None = None,
        init_image: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._caches, self._emit = caches, emit
        self.engine = Engine(executor, emit, workers=workers, backoff=backoff, clock=clock)
        self.queue = self.engine.queue
        self._fabric_lookup = FabricLookup(caches)
        topologies = TopologyLookup(caches, enabled=topology_aware)
        schedulers = SchedulerLookup(caches, backends)
        settings = backends.placement if backends is not None else None
        view = self._cluster_view(settings)
        placement = self._placement(view, settings)
        observer = Observer(
            caches,
            self.engine.states,
            placement,
            init_image,
            topologies,
            schedulers,
            self._fabric_lookup,
            PriorityClassLookup(caches, self.engine.clock),
            self._claim_sources(view),
        )
        self._add_workloads(observer, topologies, placement)
        free_slots = None
        if view is not None and placement is not None:
            free_slots = FreeSlotsObserver(view, placement.reserved, caches.fabrics, self.engine.clock)
        if topology_aware:
            reconciler = TopologyReconciler(caches, backends, TopologyUsageObserver(caches, free_slots))
            self.engine.add(TopologyKey, reconciler)
        watches = (
            *workload_watches(caches, self.engine.states, self.engine.start_delay),
            *domain_watches(caches, self._fabric_lookup),
            *(topology_watches(caches, free_slots) if topology_aware else ()),
            *(node_label_watches(caches) if topology_aware else ()),
            *quota_watches(caches.quotas, self.engine.api_errors),
        )
        register(watches, self.queue.enqueue, self.queue.reset_backoff)

    def _cluster_view(self, settings: PlacementSettings | None) -> ClusterView | None:
        pods, devices = self._caches.cluster_pods, self._caches.devices
        if settings is None or pods is None or devices is None:
            return None
        return ClusterView(self._caches.nodes, pods, devices)

    def _claim_sources(self, view: ClusterView | None) -> ClaimSourcesObserver | None:
        volumes = self._caches.volumes
        if view is None or volumes is None:
            return None
        register(placement_watches(self._caches, view, volumes, self._fabric_lookup), self.queue.enqueue)
        return ClaimSourcesObserver(self._caches, view, volumes)

    def _placement(
        self, view: ClusterView | None, settings: PlacementSettings | None
    ) -> PlacementState | None:
        """The placement of gangs by the operator, if it is enabled."""
        if view is None or settings is None:
            return None
        caches = self._caches
        placement = PlacementState(
            view,
            has_quota=lambda namespace: bool(caches.quotas.by_index(BY_NAMESPACE, namespace)),
            priority_class=caches.priority_class,
            scheduler=lambda: caches.scheduler_process.identity,
            settings=settings,
            clock=self.engine.clock,
        )
        replicas = {key for gang in caches.gangs if (key := replica_of(gang.metadata)) is not None}
        if replicas:
            placement.expect(replicas, self.engine.clock() + timing.PLACEMENT_START_LIMIT)
            self._enqueue_later(PlacementKey(), timing.PLACEMENT_START_LIMIT + timing.PLACEMENT_INTERVAL)
        view.subscribe(partial(self._on_cluster_change, placement))
        caches.scheduler_process.subscribe(partial(self._on_cluster_change, placement))
        return placement

    def _on_cluster_change(self, placement: PlacementState) -> None:
        """Run another round, if a gang waits for it."""
        if (delay := placement.round_delay) is not None:
            self._enqueue_later(PlacementKey(), delay)

    def _enqueue_later(self, key: Key, delay: float) -> None:
        self.queue.enqueue(key, asyncio.get_running_loop().time() + delay)

    def _add_workloads(
        self, observer: Observer, topologies: TopologyLookup, placement: PlacementState | None
    ) -> None:
        """Add the reconcilers of sets and replicas, and of what they depend on."""
        caches, engine = self._caches, self.engine
        states, enqueue = engine.states, self.queue.enqueue
        reports = ReplicaReports(states, enqueue)
        slow_writes = SlowWrites(states, engine.clock, reports.aggregate_later)
        scale_in = ScaleInTracker(observer, states)
        domains = DomainReconciler(self._fabric_lookup, states, enqueue)
        undecodable = UndecodableObjects(
            reported_on_themselves=(caches.sets, caches.topologies, caches.topology_bindings),
            reported_on_sets=(*caches.replica_objects, *caches.rbac_objects, caches.claims),
            emit=self._emit,
            enqueue=enqueue,
            clock=engine.clock,
        )
        engine.add(DomainKey, domains)
        if placement is not None:
            engine.add(PlacementKey, PlacementReconciler(placement, enqueue))
        engine.add(
            ReplicaKey,
            ReplicaReconciler(caches, states, observer, reports, scale_in, placement, slow_writes, enqueue),
        )
        engine.add(
            SetKey,
            SetReconciler(
                caches,
                states,
                observer,
                reports,
                scale_in,
                topologies,
                slow_writes,
                domains.of_set,
                undecodable.errors,
            ),
        )

    def add_graphs(self, graph_caches: GraphCaches, settings: DynamoSettings, writes: Transport) -> None:
        """Reconcile DynamoGraphDeployments, too, from now on. They have an executor of their own, because
        replies for Services and RBAC objects go into other caches than those of sets."""
        caches = self._caches
        written: tuple[Cache[Any], ...] = (caches.sets, caches.cliques, caches.groups, *graph_caches.all)
        resources = (*(cache.resource for cache in written), SECRETS)
        limiter = self.engine.executor.limiter
        executor = Executor(writes, resources, store=CacheStore(written), limiter=limiter)
        observer = GraphObserver(caches, graph_caches, settings, self.engine.states)
        self.engine.add(GraphKey, GraphReconciler(observer, self.engine.states), executor)
        register(graph_watches(caches, graph_caches), self.queue.enqueue)
        UndecodableObjects(
            reported_on_themselves=(graph_caches.graphs, graph_caches.children[ADAPTERS]),
            emit=self._emit,
            clock=self.engine.clock,
            reporter=REPORTER,
        )
