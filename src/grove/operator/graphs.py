"""DynamoGraphDeployments at work: one key for each, beside the sets that are made from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog
from msgspec.structs import replace

from grove.api.intents import Delete, ObjectRef, Occurrence, Target
from grove.dynamo.components import Components
from grove.dynamo.grove import Grove
from grove.dynamo.plan import GraphPlan, Told, plan_graph
from grove.dynamo.seen import Backend, StoredGraph
from grove.dynamo.types import DynamoGraphDeployment
from grove.kube.cache import Cache
from grove.kube.client import Client
from grove.kube.errors import KubeError
from grove.kube.executor import Executor
from grove.kube.keyed import KeyedExecutor
from grove.kube.limiter import Limiter
from grove.kube.outcome import Outcome
from grove.kube.queue import Queue
from grove.kube.resource import SECRETS
from grove.kube.store import CacheStore
from grove.kube.transport import Transport
from grove.operator.caches import Caches
from grove.operator.graph_caches import ADAPTERS, GRAPHS, GraphCaches, GraphKey
from grove.operator.graph_layer import Layer, foreign
from grove.operator.graph_sight import Sight
from grove.operator.graph_wakes import wire
from grove.operator.nodes import Nodes
from grove.operator.publish import Publisher, intents
from grove.operator.undecodable import UndecodableObjects

log = structlog.get_logger("grove.operator")

_REPORTER = "dynamographdeployment-controller"
_KIND = DynamoGraphDeployment.KIND


class Graphs:
    """Brings every deployment in order, whenever something about it changes."""

    def __init__(
        self,
        caches: Caches,
        known: GraphCaches,
        writes: Transport,
        limiter: Limiter,
        tell: Callable[[Occurrence], None],
        layer: Layer,
        nodes: Nodes,
        *,
        workers: int = 8,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._known, self._tell, self._clock = known, tell, clock
        kept: tuple[Cache[Any], ...] = (caches.sets, caches.cliques, caches.groups, *known.all)
        resources = [*(cache.resource for cache in kept), SECRETS]
        executor = Executor(writes, resources, store=CacheStore(kept), limiter=limiter)
        self._executor: KeyedExecutor[GraphKey] = KeyedExecutor(executor, lambda: self.queue, lambda *_: None)
        self._backends: dict[str, Backend] = {backend.name: backend for backend in (Grove(), Components())}
        self._publisher: Publisher[GraphKey] = Publisher()
        self._ending: dict[GraphKey, str] = {}
        """Deployments, by UID, in namespaces that are on their way out: nothing more can be done there."""
        self.queue: Queue[GraphKey] = Queue(
            "graphs", self._work, workers=workers, tenant=lambda key: key.namespace
        )
        sets = wire(caches, known, nodes, self.queue.wake)
        UndecodableObjects(
            reported_on_themselves=(known.graphs, known.children[ADAPTERS]),
            emit=tell,
            clock=clock,
            reporter=_REPORTER,
        )
        self._sight = Sight(caches, known, layer, nodes, sets)

    async def _work(self, key: GraphKey) -> None:
        if not await self._executor.verify(key):
            return
        now = self._clock()
        stored = self._known.graphs.get(key.namespace, key.name)
        if key in self._known.graphs.undecodable:
            return  # an event reports it; with no state known, its set would be taken for an orphan
        if stored is None:
            await self._clear(key)
            return
        if self._ending.get(key) == stored.metadata.uid:
            return
        seen = await self._sight.of(key, stored)
        plan = plan_graph(seen, self._backends, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        if outcome.in_vain:
            self._ending[key] = stored.metadata.uid
            return
        again = bool(plan.intents) and outcome.done
        if again:
            self._tell_news(stored, [news for news in plan.news if not news.of_status])
        if trouble := _trouble(outcome):
            plan = plan_graph(replace(seen, trouble=trouble), self._backends, now)
        told, later = await self._publish(key, plan) if not again else (True, self._loop_time())
        if told and later is None:
            self._tell_news(stored, [news for news in plan.news if news.of_status])
        self.queue.wake(key, later, failed=outcome.failed or outcome.outdated or not told)

    async def _clear(self, key: GraphKey) -> None:
        """Delete the set of a deployment that is gone: the garbage collector would too, in its own time."""
        self._ending.pop(key, None)
        self._sight.forget(key)
        self._publisher.forget(key)
        left = self._sight.workload(key)
        if left is None or left.metadata.deletion_timestamp is not None:
            self.queue.forget(key)
            self._executor.forget(key)
            return
        meta = left.metadata
        about = Target(left.api_version, left.kind, meta.name, meta.namespace)
        outcome = await self._executor.execute(key, [Delete(about, uid=meta.uid)])
        self.queue.wake(key, None, failed=outcome.failed)

    async def _publish(self, key: GraphKey, plan: GraphPlan) -> tuple[bool, float | None]:
        """Publish what is due. Returns whether that went well, and when more will be due."""
        drafts = (plan.draft,) if plan.draft is not None else ()
        due, later = self._publisher.consider(key, drafts, self._loop_time(), busy=False)
        if not due:
            return True, later
        outcome = await self._executor.execute(key, intents(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        return not (outcome.failed or outcome.outdated), None

    def _tell_news(self, stored: StoredGraph, news: list[Told]) -> None:
        for told in news:
            meta = stored.metadata
            regarding = ObjectRef(_KIND.api_version, _KIND.name, meta.name, meta.namespace, meta.uid)
            note, action = told.note[:1000], "Sync"
            self._tell(Occurrence(regarding, told.reason, note, action, told.warning, reporter=_REPORTER))

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()


async def serve(graphs: Callable[[], Graphs], client: Client, known: GraphCaches, grace: float) -> None:
    """Act as soon as everything is known, until cancelled; never on what somebody else serves."""
    await known.synced()
    try:
        why = await foreign(client)
    except KubeError as problem:
        why = str(problem)
    if why:
        log.error("not serving", key=GRAPHS.label, action="leave alone", reason=why)
        await asyncio.Event().wait()
    layer = graphs()
    layer.queue.start()
    log.info("serving", key=GRAPHS.label, action="lead", reason="dynamo.enabled")
    try:
        await asyncio.Event().wait()
    finally:
        await layer.queue.stop(grace)


def _trouble(outcome: Outcome) -> str:
    return "; ".join(dict.fromkeys(map(str, outcome.errors)))
