"""The informer caches of DynamoGraphDeployments and of the objects created for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from grove import timing
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.dynamo import keys
from grove.dynamo.api import pull_secret
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.kueue_topology import KueueTopology
from grove.dynamo.api.kueue_workload import KueueWorkload
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.render.endpoint_picker import POOL_GROUP, POOL_KIND
from grove.dynamo.snapshot import ChildObject, StoredGraph
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
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
INFERENCE_POOLS = Resource(POOL_GROUP, "v1", "inferencepools", POOL_KIND)
KUEUE_TOPOLOGIES = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology", namespaced=False)
KUEUE_WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
_BY_NAMESPACE, _BY_COMPONENT, _BY_OWNER = "namespace", "component", "owner"
_OWNED_KINDS = (SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, CONFIG_MAPS)


class ComponentKey(NamedTuple):
    """A component of a deployment."""

    namespace: str
    graph: str
    component: str


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
        self.children[INFERENCE_POOLS] = Cache(INFERENCE_POOLS, ChildObject, labels=keys.GRAPH)
        if without_grove:
            deployments = self.children[DEPLOYMENTS] = Cache(DEPLOYMENTS, ChildObject, labels=keys.GRAPH)
            self.children[LEADER_WORKER_SETS] = Cache(LEADER_WORKER_SETS, ChildObject, labels=keys.GRAPH)
            self.needed = (*self.needed, deployments)
        self.kueue: Cache[KueueTopology] | None = Cache(KUEUE_TOPOLOGIES, KueueTopology) if kueue else None
        self.kueue_workloads = _kueue_workloads() if kueue else None
        self.pods = _pods_of_components() if kueue else None
        """The pods of deployments: Kueue's Workloads for Deployments belong to single pods."""
        self.secrets = _pull_secrets() if pull_secrets else None

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        """The caches whose kinds are written, too."""
        return (self.graphs, *self.children.values())

    @property
    def optional(self) -> tuple[Cache[Any], ...]:
        """The caches of kinds that most clusters do not serve."""
        return (self.children[INFERENCE_POOLS],)

    @property
    def watched(self) -> tuple[Cache[Any], ...]:
        """The caches that need a reflector."""
        others = (self.secrets, self.kueue, self.kueue_workloads, self.pods)
        return (*self.all, *(each for each in others if each is not None))

    async def synced(self) -> None:
        """Wait until all caches are synced, or are known to be absent for kinds that a cluster may lack."""
        for cache in self.needed:
            await cache.synced.wait()
        pools = self.children[INFERENCE_POOLS]
        for cache in self.all:
            if cache is not pools:
                await cache.synced_or_absent.wait()
        # Without the RBAC permission to read them these caches never sync, so these waits are bounded.
        bounded = [(timing.OPTIONAL_SYNC_TIMEOUT, pools.synced_or_absent)]
        if self.secrets is not None:
            bounded.append((timing.SECRETS_SYNC_TIMEOUT, self.secrets.synced))
        for limit, synced in bounded:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await synced.wait()

    @property
    def leader_worker_sets(self) -> bool:
        """Whether the cluster serves LeaderWorkerSets."""
        cache = self.children.get(LEADER_WORKER_SETS)
        return cache is not None and cache.synced.is_set()

    @property
    def inference_pools(self) -> bool:
        """Whether the cluster serves InferencePools; False if it is known not to."""
        cache = self.children[INFERENCE_POOLS]
        return cache.synced.is_set() or not cache.synced_or_absent.is_set()

    @property
    def kueue_topologies(self) -> dict[str, tuple[str, ...]] | None:
        """The node labels of the levels of each Kueue Topology, by its name; None if not known."""
        if self.kueue is None or not self.kueue.synced_or_absent.is_set():
            return None
        return {each.metadata.name: each.labels for each in self.kueue}

    def workloads_of(self, owner: ChildObject | None, component: ComponentKey) -> tuple[KueueWorkload, ...]:
        """Kueue's Workloads of a component: those that belong to its object, or to one of its pods."""
        if self.kueue_workloads is None or self.pods is None:
            return ()
        owners = [each.metadata.uid for each in self.pods.by_index(_BY_COMPONENT, component)]
        owners += [owner.metadata.uid] if owner is not None else []
        found = (each for uid in owners for each in self.kueue_workloads.by_index(_BY_OWNER, uid))
        return tuple({each.metadata.uid: each for each in found}.values())

    def registries(self, namespace: str) -> dict[str, frozenset[str]] | None:
        """The registries of each image pull Secret, by its name; None if Secrets are not known: discovery is
        disabled, or the operator may not read them."""
        if self.secrets is None or not self.secrets.synced.is_set():
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


def _kueue_workloads() -> Cache[KueueWorkload]:
    def owners(found: KueueWorkload) -> list[str]:
        return [owner.uid for owner in found.metadata.owner_references]

    return Cache(KUEUE_WORKLOADS, KueueWorkload, indexes={_BY_OWNER: owners})


def _pods_of_components() -> Cache[PartialObjectMetadata]:
    def component(found: PartialObjectMetadata) -> list[ComponentKey]:
        meta = found.metadata
        return [
            ComponentKey(meta.namespace, meta.labels.get(keys.GRAPH, ""), meta.labels.get(keys.COMPONENT, ""))
        ]

    return Cache(PODS, PartialObjectMetadata, labels=keys.GRAPH, indexes={_BY_COMPONENT: component})


def _pull_secrets() -> Cache[PullSecret]:
    by_namespace = {_BY_NAMESPACE: lambda found: (found.metadata.namespace,)}
    return Cache(SECRETS, PullSecret, indexes=by_namespace, fields=f"type={pull_secret.TYPE}")
