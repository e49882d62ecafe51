"""Watches what admission rules read, and nothing else: no pods, no children of sets."""

from __future__ import annotations

import asyncio
from typing import Any

from grove.api.configuration.types import OperatorConfiguration
from grove.fabrics.registry import Providers
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.operator.caches.dynamo import INFERENCE_POOLS, LEADER_WORKER_SETS
from grove.operator.caches.registry import Caches


class AdmissionWatches:
    """The caches of an admission process."""

    def __init__(self, config: OperatorConfiguration, fabrics: Providers) -> None:
        self.caches = Caches(
            fabrics=fabrics,
            auto_fabric=config.network.auto_mnnvl_enabled,
            pods_per_set=config.limits.pods_per_set,
            topology_aware=config.topology_aware_scheduling.enabled,
            reads_topologies=config.topology_aware_scheduling.enabled or config.dynamo.enabled,
        )
        for cache in self._watched:
            cache.watch_only(config.namespaces)

    @property
    def _needed(self) -> tuple[Cache[Any], ...]:
        return (self.caches.sets, *self.caches.read_topologies)

    @property
    def _watched(self) -> tuple[Cache[Any], ...]:
        caches = self.caches
        return (*self._needed, caches.claim_templates, caches.priority_classes, *caches.domains.values())

    @property
    def unsynced(self) -> list[str]:
        """The needed kinds whose caches are not synced yet, or not served any more."""
        return [cache.resource.label for cache in self._needed if not cache.synced.is_set()]

    def leader_worker_sets(self) -> bool:
        """Whether the cluster serves LeaderWorkerSets."""
        return self._serves(LEADER_WORKER_SETS)

    def inference_pools(self) -> bool:
        """Whether the cluster serves InferencePools; False if it is known not to."""
        return not self.caches.crd_watch.definitions.synced.is_set() or self._serves(INFERENCE_POOLS)

    def _serves(self, resource: Resource) -> bool:
        definition = self.caches.crd_watch.definitions.get("", resource.label)
        return definition is not None and definition.serves(resource.version)

    async def run(self, client: Client) -> None:
        """Run the reflectors, until cancelled."""
        caches, domains = self.caches, tuple(self.caches.domains.values())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(caches.crd_watch.run(client))
            for cache in self._watched:
                for store in cache.stores:
                    reflector = Reflector(
                        client, store, crd_watch=caches.crd_watch, optional=cache in domains
                    )
                    tasks.create_task(reflector.run())
            tasks.create_task(caches.nodes.run(client))
            tasks.create_task(caches.fabric_nodes.run(client, caches.crd_watch))
