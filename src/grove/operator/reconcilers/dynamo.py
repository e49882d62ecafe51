"""Reconciles DynamoGraphDeployments: one key for each, in a work queue of their own. The sets that are
rendered from them are reconciled as any other set (`grove.operator.controller`)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import structlog
from msgspec.structs import replace

from grove import timing
from grove.api.intents import Delete, EventRecord, ObjectRef, Target
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.backends.grove import GroveBackend
from grove.dynamo.backends.lws import LwsBackend
from grove.dynamo.reconcile.planner import GraphEvent, GraphPlan, plan_graph
from grove.dynamo.snapshot import GraphBackend, StoredGraph
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.resource import SECRETS
from grove.kube.client.retry import Backoff
from grove.kube.client.transport import Transport
from grove.kube.errors import KubeError
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import Outcome
from grove.kube.executor.write_limiter import WriteLimiter
from grove.kube.workqueue.queue import WorkQueue
from grove.operator.caches.dynamo import ADAPTERS, GRAPHS, GraphCaches
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.operator.engine.status_publisher import StatusPublisher, status_writes
from grove.operator.engine.undecodable import UndecodableObjects
from grove.operator.keys import GraphKey
from grove.operator.observers.dynamo import GraphObserver
from grove.operator.watches.dynamo import graph_watches
from grove.operator.watches.table import register

log = structlog.get_logger("grove.operator")

_REPORTER = "dynamographdeployment-controller"
_KIND = DynamoGraphDeployment.KIND


class GraphReconciler:
    """Reconciles every deployment that a watch event, a time or a failure puts into the work queue."""

    def __init__(
        self,
        caches: Caches,
        graph_caches: GraphCaches,
        writes: Transport,
        limiter: WriteLimiter,
        emit: Callable[[EventRecord], None],
        settings: DynamoSettings,
        nodes: Nodes,
        *,
        workers: int = timing.GRAPH_WORKERS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._graph_caches, self._emit, self._clock = graph_caches, emit, clock
        written: tuple[Cache[Any], ...] = (caches.sets, caches.cliques, caches.groups, *graph_caches.all)
        resources = [*(cache.resource for cache in written), SECRETS]
        executor = Executor(writes, resources, store=CacheStore(written), limiter=limiter)
        self._executor: KeyedExecutor[GraphKey] = KeyedExecutor(executor, lambda: self.queue, lambda *_: None)
        self._backends: dict[str, GraphBackend] = {
            backend.name: backend for backend in (GroveBackend(), LwsBackend())
        }
        self._publisher: StatusPublisher[GraphKey] = StatusPublisher()
        self._terminating: dict[GraphKey, str] = {}
        """The UIDs of deployments in terminating namespaces: nothing can be created there any more."""
        self.queue: WorkQueue[GraphKey] = WorkQueue(
            "graphs", self._reconcile, workers=workers, tenant=lambda key: key.namespace
        )
        register(graph_watches(caches, graph_caches, nodes), self.queue.enqueue)
        UndecodableObjects(
            reported_on_themselves=(graph_caches.graphs, graph_caches.children[ADAPTERS]),
            emit=emit,
            clock=clock,
            reporter=_REPORTER,
        )
        self._observer = GraphObserver(caches, graph_caches, settings, nodes)

    async def _reconcile(self, key: GraphKey) -> None:
        if not await self._executor.verify(key):
            return
        now = self._clock()
        stored = self._graph_caches.graphs.get(key.namespace, key.name)
        if key in self._graph_caches.graphs.undecodable:
            return  # an event reports it; without this return its set would be deleted as an orphan
        if stored is None and self._is_uncertain():
            return
        if stored is None:
            await self._delete_orphaned_set(key)
            return
        if self._terminating.get(key) == stored.metadata.uid:
            return
        snapshot = await self._observer.of(key, stored)
        plan = plan_graph(snapshot, self._backends, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        if outcome.namespace_terminating:
            self._terminating[key] = stored.metadata.uid
            return
        again = bool(plan.intents) and outcome.done
        if again:
            self._emit_events(stored, [event for event in plan.events if not event.of_status])
        if message := _error_message(outcome):
            plan = plan_graph(replace(snapshot, last_error=message), self._backends, now)
        published, later = await self._publish(key, plan) if not again else (True, self._loop_time())
        if published and later is None:
            self._emit_events(stored, [event for event in plan.events if event.of_status])
        self.queue.enqueue(key, later, failed=outcome.failed or outcome.outdated or not published)

    def _is_uncertain(self) -> bool:
        """Whether deployments may exist that are not in the cache: their kind is not served at the moment, or
        one of them could not even be named. Then a set without its deployment is no orphan."""
        graphs = self._graph_caches.graphs
        return not graphs.synced.is_set() or ("", "") in graphs.undecodable

    async def _delete_orphaned_set(self, key: GraphKey) -> None:
        """Delete the set of a deployment that is gone, sooner than Kubernetes' garbage collector does."""
        self._terminating.pop(key, None)
        self._observer.forget(key)
        self._publisher.forget(key)
        workload = self._observer.workload(key)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            self.queue.forget(key)
            self._executor.forget(key)
            return
        meta = workload.metadata
        about = Target(workload.api_version, workload.kind, meta.name, meta.namespace)
        outcome = await self._executor.execute(key, [Delete(about, uid=meta.uid)])
        self.queue.enqueue(key, None, failed=outcome.failed)

    async def _publish(self, key: GraphKey, plan: GraphPlan) -> tuple[bool, float | None]:
        """Write the status if it is due. Returns whether that succeeded, and when it is due otherwise."""
        status_updates = (plan.status_update,) if plan.status_update is not None else ()
        due, later = self._publisher.due_updates(key, status_updates, self._loop_time(), busy=False)
        if not due:
            return True, later
        outcome = await self._executor.execute(key, status_writes(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        return not (outcome.failed or outcome.outdated), None

    def _emit_events(self, stored: StoredGraph, events: list[GraphEvent]) -> None:
        for event in events:
            meta = stored.metadata
            regarding = ObjectRef(_KIND.api_version, _KIND.name, meta.name, meta.namespace, meta.uid)
            note, action = event.note[:1000], "Sync"
            self._emit(EventRecord(regarding, event.reason, note, action, event.warning, reporter=_REPORTER))

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()


async def serve(
    graphs: Callable[[], GraphReconciler], client: Client, graph_caches: GraphCaches, grace: float
) -> None:
    """Reconcile deployments as soon as their caches are synced, until cancelled; not at all if Dynamo's own
    operator serves them."""
    await graph_caches.synced()
    if why := await _checked_conflict(client):
        log.error("not serving", key=GRAPHS.label, action="ignore", reason=why)
        await asyncio.Event().wait()
    reconciler = graphs()
    reconciler.queue.start()
    log.info("serving", key=GRAPHS.label, action="lead", reason="dynamo.enabled")
    try:
        await asyncio.Event().wait()
    finally:
        await reconciler.queue.stop(grace)


async def _checked_conflict(client: Client) -> str:
    """Why deployments must not be served; empty if nothing speaks against it. A check that fails is repeated
    with back-off: until it succeeds, it is not known which operator serves them."""
    backoff, rng, failures = Backoff(*timing.DYNAMO_CONFLICT_BACKOFF), random.Random(), 0  # noqa: S311 - jitter
    while True:
        try:
            return await dynamo_operator_conflict(client)
        except KubeError as problem:
            pause = backoff.pause(failures, rng)
            failures += 1
            log.warning("not serving yet", key=GRAPHS.label, action="retry", reason=str(problem), pause=pause)
            await asyncio.sleep(pause)


def _error_message(outcome: Outcome) -> str:
    return "; ".join(dict.fromkeys(map(str, outcome.errors)))
