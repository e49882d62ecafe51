"""The informer caches of DynamoGraphDeployments and of the objects created for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from grove import timing
from grove.dynamo import keys
from grove.dynamo.api import pull_secret
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.kueue_topology import KueueTopology
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.snapshot import ChildObject, StoredGraph
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.operator.caches.resources import resource_of

GRAPHS = resource_of(DynamoGraphDeployment.KIND)
ADAPTERS = resource_of(ScalingAdapter.KIND)
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
KUEUE_TOPOLOGIES = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology", namespaced=False)
_BY_NAMESPACE = "namespace"
_OWNED_KINDS = (SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, CONFIG_MAPS)


class GraphCaches:
    """Caches of DynamoGraphDeployments and of the objects that they own or use, sets aside."""

    def __init__(
        self, *, without_grove: bool = False, pull_secrets: bool = False, kueue: bool = False
    ) -> None:
        self.graphs: Cache[StoredGraph] = Cache(GRAPHS, StoredGraph)
        self.children: dict[Resource, Cache[ChildObject]] = {
            resource: Cache(resource, ChildObject, labels=keys.GRAPH) for resource in _OWNED_KINDS
        }
        # A deployment may use a claim that it did not create and that has no label of ours.
        self.children[PERSISTENT_VOLUME_CLAIMS] = Cache(PERSISTENT_VOLUME_CLAIMS, ChildObject)
        self.needed: tuple[Cache[Any], ...] = (self.graphs, *self.children.values())
        self.children[ADAPTERS] = Cache(ADAPTERS, ChildObject, labels=keys.GRAPH)
        if without_grove:
            deployments = self.children[DEPLOYMENTS] = Cache(DEPLOYMENTS, ChildObject, labels=keys.GRAPH)
            self.children[LEADER_WORKER_SETS] = Cache(LEADER_WORKER_SETS, ChildObject, labels=keys.GRAPH)
            self.needed = (*self.needed, deployments)
        self.kueue: Cache[KueueTopology] | None = Cache(KUEUE_TOPOLOGIES, KueueTopology) if kueue else None
        self.secrets = _pull_secrets() if pull_secrets else None

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        """The caches whose kinds are written, too."""
        return (self.graphs, *self.children.values())

    @property
    def watched(self) -> tuple[Cache[Any], ...]:
        """The caches that need a reflector."""
        return (*self.all, *(each for each in (self.secrets, self.kueue) if each is not None))

    async def synced(self) -> None:
        """Wait until all caches are synced, or are known to be absent for kinds that a cluster may lack."""
        for cache in self.needed:
            await cache.synced.wait()
        for cache in self.all:
            await cache.synced_or_absent.wait()
        if self.secrets is not None:
            # Without the RBAC permission to read Secrets this cache never syncs: the wait is bounded.
            with suppress(TimeoutError):
                async with asyncio.timeout(timing.SECRETS_SYNC_TIMEOUT):
                    await self.secrets.synced.wait()

    @property
    def leader_worker_sets(self) -> bool:
        """Whether the cluster serves LeaderWorkerSets."""
        cache = self.children.get(LEADER_WORKER_SETS)
        return cache is not None and cache.synced.is_set()

    @property
    def kueue_topologies(self) -> dict[str, tuple[str, ...]] | None:
        """The node labels of the levels of each Kueue Topology, by its name; None if not known."""
        if self.kueue is None or not self.kueue.synced_or_absent.is_set():
            return None
        return {each.metadata.name: each.labels for each in self.kueue}

    def registries(self, namespace: str) -> dict[str, frozenset[str]] | None:
        """The registries of each image pull Secret, by its name; None if Secrets are not known."""
        if self.secrets is None:
            return {}
        if not self.secrets.synced.is_set():
            return None
        found = self.secrets.by_index(_BY_NAMESPACE, namespace)
        return {each.metadata.name: each.registries for each in found}

    def existing(
        self, namespace: str, wanted: Iterator[tuple[str, str]]
    ) -> dict[tuple[str, str], ChildObject]:
        """The existing objects among these kinds and names."""
        caches = {resource.kind: cache for resource, cache in self.children.items()}
        return {
            (kind, name): found
            for kind, name in wanted
            if kind in caches and (found := caches[kind].get(namespace, name)) is not None
        }


def _pull_secrets() -> Cache[PullSecret]:
    by_namespace = {_BY_NAMESPACE: lambda found: (found.metadata.namespace,)}
    return Cache(SECRETS, PullSecret, indexes=by_namespace, fields=f"type={pull_secret.TYPE}")
