"""One operator without the process around it: its caches watch from the start, its controllers run while it
is the leader. Leader election, probes and signals are in `grove.operator.process`."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial

from grove import timing
from grove.api.configuration.types import PODS_PER_SET, TopologyMode
from grove.api.naming import labels
from grove.dynamo.context import GraphContext
from grove.fabrics.registry import Providers
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.retry import Backoff
from grove.kube.client.transport import Transport
from grove.kube.events import EventRecorder
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.logger import get_logger
from grove.operator import python_gc
from grove.operator.caches.dynamo import GraphCaches
from grove.operator.caches.registry import Caches
from grove.operator.controller import Controller
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.metrics.workloads import LeaderMetrics
from grove.operator.reconcilers.dynamo import serve
from grove.schedulers.registry import SchedulerBackends

log = get_logger("grove.operator")


class Manager:
    """One operator on one transport. `watch` may run long before `lead`, which runs once."""

    def __init__(
        self,
        transport: Transport,
        *,
        workers: int = timing.WORKERS,
        backoff: Backoff | None = None,
        grace: float = timing.QUEUE_STOP_TIMEOUT,
        init_image: str = "",
        topology_aware: bool = False,
        start_order: bool = True,
        backends: SchedulerBackends | None = None,
        dynamo: DynamoSettings | None = None,
        fabrics: Providers | None = None,
        auto_fabric: bool = False,
        pods_per_set: int = PODS_PER_SET,
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self._transport = transport
        self._init_image = init_image
        self._topology_aware = topology_aware
        self._backends = backends
        self._workers, self._backoff = workers, backoff
        self._grace = grace
        settings = backends.placement if backends is not None else None
        aware = backends.topology_aware if backends and topology_aware else ()
        self.caches = Caches(
            backends.gang_object_kinds if backends else (),
            tuple(kind for _, kind in aware),
            backends.versioned_kinds if backends else (),
            fabrics,
            auto_fabric=auto_fabric,
            pods_per_set=pods_per_set,
            placement=settings is not None,
            topology_aware=topology_aware,
            reads_topologies=topology_aware or dynamo is not None,
            start_order=start_order,
            scheduler_lease=settings.scheduler_lease if settings is not None else None,
        )
        self._dynamo = dynamo
        self.graphs = _graph_caches(dynamo.context) if dynamo is not None else None
        for cache in (*self.caches.all, *(self.graphs.watched if self.graphs else ())):
            cache.watch_only(namespaces)
        self.synced = asyncio.Event()

    async def run(self, writes: Transport | None = None) -> None:
        """Watch and lead without an election, until cancelled. `writes` may be a fenced transport."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watch())
            tasks.create_task(self.lead(writes or self._transport))

    async def watch(self) -> None:
        """Run the reflectors of all caches, until cancelled."""
        client = Client(self._transport)
        crd_watch = self.caches.crd_watch
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(crd_watch.run(client))
            graphs = self.graphs.watched if self.graphs else ()
            # Most clusters have no driver of domains, and no endpoint pickers.
            missing = (*self.caches.domains.values(), *(self.graphs.optional if self.graphs else ()))
            for cache in (*self.caches.all, *self.caches.inspected_crds.values(), *graphs):
                for store in cache.stores:
                    reflector = Reflector(client, store, crd_watch=crd_watch, optional=cache in missing)
                    tasks.create_task(reflector.run())
            tasks.create_task(self.caches.nodes.run(client))
            tasks.create_task(self.caches.fabric_nodes.run(client, crd_watch))
            if self.caches.cluster_pods is not None:
                tasks.create_task(self.caches.cluster_pods.run(client))
                tasks.create_task(self.caches.scheduler_process.run(client))
            if self.caches.devices is not None:
                tasks.create_task(self.caches.devices.run(client, crd_watch))
            if self.caches.volumes is not None:
                tasks.create_task(self.caches.volumes.run(client))
            tasks.create_task(self._log_missing_crds())
            for cache in self.caches.needed:
                await cache.synced.wait()
            await self._wait_for_optional_caches()
            log.info("synced", key="operator", action="watch", reason="all needed informer caches are synced")
            self.synced.set()

    async def lead(self, writes: Transport) -> None:
        """Run the controllers as soon as the caches are synced, until cancelled."""
        await self.synced.wait()
        python_gc.freeze_cached_objects()
        executor = Executor(writes, self.caches.resources, store=CacheStore(self.caches.all))
        recorder = EventRecorder(Client(writes), labels.OPERATOR, socket.gethostname())
        controller = Controller(
            self.caches,
            executor,
            recorder.record,
            workers=self._workers,
            backoff=self._backoff,
            init_image=self._init_image,
            topology_aware=self._topology_aware,
            backends=self._backends,
        )
        with LeaderMetrics(self.caches):
            recorder.start()
            controller.queue.start()
            log.info("working", key="operator", action="lead", reason="this operator is the leader")
            try:
                await self._serve_graphs(controller, writes)
            finally:
                await controller.queue.stop(self._grace)
                await recorder.close(timing.EVENT_FLUSH_TIMEOUT)

    async def _serve_graphs(self, controller: Controller, writes: Transport) -> None:
        """Reconcile DynamoGraphDeployments, if they are enabled, until cancelled."""
        if self.graphs is None or self._dynamo is None:
            await asyncio.Event().wait()
            return
        add = partial(controller.add_graphs, self.graphs, self._dynamo, writes)
        await serve(add, Client(self._transport), self.graphs)

    async def _wait_for_optional_caches(self) -> None:
        """Wait a few seconds for the caches of shared claims, fabric domains and scheduler objects. After
        that only the sets that use them wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timing.OPTIONAL_SYNC_TIMEOUT):
                for cache in (*self.caches.optional, *self.caches.inspected_crds.values()):
                    await cache.synced_or_absent.wait()

    async def _log_missing_crds(self) -> None:
        """Log once which of our CRDs are missing, and how to create them: the caches wait for them."""
        for cache in self.caches.needed:
            await cache.synced_or_absent.wait()
        if missing := self.caches.unsynced:
            reason = f"{', '.join(missing)} not served: grove crds | kubectl apply --server-side -f -"
            log.warning("CRDs are missing", key="operator", action="wait", reason=reason)


def _graph_caches(context: GraphContext) -> GraphCaches:
    kueue = context.without_grove and context.topology.mode is TopologyMode.KUEUE
    return GraphCaches(without_grove=context.without_grove, pull_secrets=context.pull_secrets, kueue=kueue)
