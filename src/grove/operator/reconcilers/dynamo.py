"""Reconciles DynamoGraphDeployments: one key for each, in a work queue of their own. The sets that are
rendered from them are reconciled as any other set (`grove.operator.controller`)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import structlog

from grove.api.intents import EventRecord
from grove.dynamo.backends.grove import GroveBackend
from grove.dynamo.backends.lws import LwsBackend
from grove.dynamo.reconcile.events import REPORTER
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.reconcile.status import with_error
from grove.dynamo.snapshot import GraphBackend
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
from grove.operator.caches.dynamo import ADAPTERS, GRAPHS, GraphCaches, GraphKey
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.operator.engine.events import event_record, events_of_plan
from grove.operator.engine.status_publisher import StatusPublisher, status_writes
from grove.operator.engine.undecodable import UndecodableObjects
from grove.operator.observers.dynamo import GraphObserver
from grove.operator.watches.dynamo import register_handlers
from grove.plan.model import Plan

log = structlog.get_logger("grove.operator")


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
        workers: int = 8,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._emit, self._clock = emit, clock
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
        sets = register_handlers(caches, graph_caches, nodes, self.queue.enqueue)
        UndecodableObjects(
            reported_on_themselves=(graph_caches.graphs, graph_caches.children[ADAPTERS]),
            emit=emit,
            clock=clock,
            reporter=REPORTER,
        )
        self._observer = GraphObserver(caches, graph_caches, settings, nodes, sets)

    async def _reconcile(self, key: GraphKey) -> None:
        if not await self._executor.verify(key):
            return
        snapshot = await self._observer.observe(key)
        if snapshot is None:
            self._forget(key)
            return
        now, stored = self._clock(), snapshot.stored
        if stored is not None and self._terminating.get(key) == stored.metadata.uid:
            return
        plan = plan_graph(snapshot, self._backends, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        if stored is not None and outcome.namespace_terminating:
            self._terminating[key] = stored.metadata.uid
            return
        for event in events_of_plan(plan, outcome):
            self._emit(event)
        if message := _error_message(outcome):
            plan = with_error(plan, snapshot, message, now)
        again = bool(plan.intents) and outcome.done and bool(plan.status_updates)
        published, later = await self._publish(key, plan) if not again else (True, self._loop_time())
        self.queue.enqueue(key, later, failed=outcome.failed or outcome.outdated or not published)

    def _forget(self, key: GraphKey) -> None:
        self._terminating.pop(key, None)
        self._publisher.forget(key)
        self.queue.forget(key)
        self._executor.forget(key)

    async def _publish(self, key: GraphKey, plan: Plan) -> tuple[bool, float | None]:
        """Write the status if it is due. Returns whether that succeeded, and when it is due otherwise."""
        due, later = self._publisher.due_updates(key, plan.status_updates, self._loop_time(), busy=False)
        if not due:
            return True, later
        outcome = await self._executor.execute(key, status_writes(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        published = not (outcome.failed or outcome.outdated)
        for event in (event for update in due for event in update.events if published):
            self._emit(event_record(event))
        return published, None

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
    backoff, rng, failures = Backoff(first=1.0, longest=60.0), random.Random(), 0  # noqa: S311 - jitter
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
