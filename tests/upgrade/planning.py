"""Plans over recorded objects with the current code, as an upgraded operator does. No cluster is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.api.intents import Intent
from grove.fabrics.registry import Providers, providers
from grove.kube.client import label_selector
from grove.kube.client.transport import Request, Transport
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome
from grove.operator.caches.dynamo import GraphCaches
from grove.operator.caches.registry import Caches
from grove.operator.controller import Controller
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.engine.errors import collect_errors
from grove.operator.engine.reconciler import PassResult
from grove.operator.keys import DomainKey, GraphKey, Key, ReplicaKey, SetKey
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
        self._recording, self._waited = recording, 0.0
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
                yield await self.plan(ReplicaKey(*key, index))
            yield await self.plan(key)

    async def intents(self) -> list[Intent]:
        """All planned writes, including those for fabric domains and DynamoGraphDeployments."""
        found = [intent async for plan in self.plans() for intent in plan.intents]
        for vendor, cache in self.caches.domains.items():
            for domain in cache:
                key = DomainKey(vendor, domain.metadata.namespace, domain.metadata.name)
                found += (await self.plan(key)).intents
        if self.graphs is not None:
            self.add_graphs(NoServer())
            for stored in self.graphs.graphs:
                found += (await self.plan(GraphKey(stored.metadata.namespace, stored.metadata.name))).intents
        return found

    def add_graphs(self, transport: Transport) -> None:
        """Reconcile the recorded deployments, too."""
        settings = DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
        assert self.graphs is not None
        assert settings is not None
        self.controller.add_graphs(self.graphs, settings, transport)

    def clock(self) -> float:
        return self._recording.at + self._waited

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._waited += seconds

    async def plan(self, key: Key) -> Plan:
        """The plan of a key, which reports as if it was executed."""
        now, reconciler = self.clock(), self.controller.engine.reconcilers[type(key)]
        snapshot = await reconciler.observe(key)
        assert snapshot is not None
        plan = reconciler.plan(snapshot, now)
        outcome = Outcome(())
        errors = collect_errors(outcome, now, plan.errors)
        reconciler.record(key, snapshot, plan, PassResult(outcome, errors, False, frozenset()))
        return plan


def _is_kind(body: Body, resource: Any) -> bool:
    return bool(body["kind"] == resource.kind and body["apiVersion"] == resource.api_version)
