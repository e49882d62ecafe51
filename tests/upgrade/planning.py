"""Plans over recorded objects with the current code, as an upgraded operator does. No cluster is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.api.intents import Intent
from grove.dynamo.reconcile.planner import plan_graph
from grove.fabrics.registry import Providers, providers
from grove.kube.client import label_selector
from grove.kube.client.transport import Request, Transport
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome
from grove.kube.executor.write_limiter import WriteLimiter
from grove.operator.caches.dynamo import GraphCaches
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches
from grove.operator.controller import Controller
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.engine.errors import collect_errors
from grove.operator.keys import DomainKey, GraphKey, ReplicaKey, SetKey
from grove.operator.reconcilers.dynamo import GraphReconciler
from grove.plan.fabric.planner import plan_domain
from grove.plan.model import Plan
from tests.upgrade.recordings import Body, Recording

INIT_IMAGE = "example.com/grove-initc:test"


class NoServer:
    """A transport without a server: plans are computed and not executed."""

    async def send(self, request: Request) -> Any:
        raise AssertionError(f"a plan was executed: {request}")

    def stream(self, request: Request) -> Any:
        raise AssertionError(f"a plan was executed: {request}")

    async def close(self) -> None: ...


class Upgraded:
    """The current operator with the recorded objects in its caches. Create it inside of a running loop."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        fabrics: Providers = providers(tuple(recording.options.get("fabrics", ())))
        self.caches = Caches(fabrics=fabrics)
        self.graphs = GraphCaches() if recording.options.get("dynamo") else None
        for cache in (*self.caches.all, *(self.graphs.all if self.graphs else ())):
            bodies = [body for body in recording.objects if _is_kind(body, cache.resource)]
            chosen = label_selector.parse(cache.labels)
            found = [msgspec.json.decode(msgspec.json.encode(body), type=cache.as_type) for body in bodies]
            cache.replace([each for each in found if chosen(each.metadata.labels)], "1")
        self.controller = Controller(
            self.caches,
            Executor(NoServer(), self.caches.resources),
            lambda _: None,
            init_image=INIT_IMAGE,
            topology_aware=bool(recording.options.get("topologyAware")),
            clock=self.clock,
        )

    async def plans(self) -> AsyncIterator[Plan]:
        """The plan of each key: replicas first, since the set sums up their reports."""
        for workload in self.caches.sets:
            key = SetKey(workload.metadata.namespace, workload.metadata.name)
            for index in range(workload.spec.replicas):
                yield await self._plan(ReplicaKey(*key, index))
            yield await self._plan(key)

    async def intents(self) -> list[Intent]:
        """All planned writes, including those for fabric domains and DynamoGraphDeployments."""
        found = [intent async for plan in self.plans() for intent in plan.intents]
        for vendor, cache in self.caches.domains.items():
            for domain in cache:
                key = DomainKey(vendor, domain.metadata.namespace, domain.metadata.name)
                snapshot = self.controller._fabric_reconciler.fabric_lookup.snapshot(key)
                assert snapshot is not None
                found += plan_domain(snapshot, self._recording.at).intents
        return [*found, *[intent async for intent in self._graph_intents()]]

    def graph_reconciler(self, transport: Transport) -> GraphReconciler:
        """The reconciler of the recorded deployments."""
        settings = DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
        assert self.graphs is not None
        assert settings is not None
        return GraphReconciler(
            self.caches,
            self.graphs,
            transport,
            WriteLimiter(),
            lambda _: None,
            settings,
            Nodes(),
            clock=self.clock,
        )

    async def _graph_intents(self) -> AsyncIterator[Intent]:
        if self.graphs is None:
            return
        graphs = self.graph_reconciler(NoServer())
        for stored in self.graphs.graphs:
            key = GraphKey(stored.metadata.namespace, stored.metadata.name)
            seen = await graphs._observer.of(key, stored)
            for intent in plan_graph(seen, graphs._backends, self.clock()).intents:
                yield intent

    def clock(self) -> float:
        return self._recording.at

    async def _plan(self, key: SetKey | ReplicaKey) -> Plan:
        now = self._recording.at
        plan = await self.controller._plan(key, now)
        assert plan is not None
        errors = collect_errors(Outcome(()), now, plan.errors)
        self.controller._record_result(key, plan, errors, frozenset())
        return plan


def _is_kind(body: Body, resource: Any) -> bool:
    return bool(body["kind"] == resource.kind and body["apiVersion"] == resource.api_version)
