"""The nodes, pods and topologies of a cluster, read once or kept up to date by watches, as topology trees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cluster_state.cache_loading import load_caches
from grove.cluster_state.kinds import TOPOLOGIES, TOPOLOGY_BINDINGS, kinds_of
from grove.cluster_state.model import ClusterState, ReadKind
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from grove.kube.errors import ConfigError
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.free_slots import accelerator_names
from grove.views.topology.domain_view import TopologyTree
from grove.views.topology.node_load import node_loads
from grove.views.topology.topologies import chosen_topologies, topology_trees

_READ = frozenset(
    {NODES, PODS, TOPOLOGIES, TOPOLOGY_BINDINGS, DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS}
)


class ClusterUse:
    """What the operator's placement knows about a cluster."""

    def __init__(self) -> None:
        setup = operator_setup()
        self._caches = new_caches(setup)
        nodes, pods, devices = self._caches.nodes, self._caches.cluster_pods, self._caches.devices
        assert pods is not None
        assert devices is not None
        self._nodes, self._pods, self._devices = nodes, pods, devices
        self._view = ClusterView(nodes, pods, devices)
        self._accelerators = accelerator_names(setup.fabrics)
        self._topologies: tuple[Cache[Any], Cache[Any]] = (
            self._caches.topologies,
            self._caches.topology_bindings,
        )

    @property
    def kinds(self) -> tuple[ReadKind, ...]:
        """What is read of a cluster."""
        found = kinds_of(self._caches, OPERATOR_LEASE)
        return tuple(kind for kind in found if kind.resource in _READ)

    def load(self, state: ClusterState) -> ClusterState:
        """Use a state that was read. Returns it with the names of objects that are skipped. Raises
        ConfigError if its nodes are not known."""
        nodes = state.kind(NODES)
        if not nodes.listed:
            problem = nodes.problem or "the snapshot has no nodes"
            raise ConfigError(f"{problem}: nodes are needed: ask for the right, or use --snapshot FILE")
        self._require_labels()
        return load_caches(state, self._caches)

    @asynccontextmanager
    async def watched(self, client: Client, changed: Callable[[], None]) -> AsyncIterator[None]:
        """Watch the cluster until the block is left, and call `changed` after each change. Nothing must be
        loaded before: nodes that are listed already would not be watched."""
        crd_watch = CrdWatch()

        def on_topology(_old: object, _new: object) -> None:
            self._require_labels()
            changed()

        for cache in self._topologies:
            cache.subscribe(on_topology)
        self._require_labels()
        self._devices.require()
        self._view.subscribe(changed)
        runs = [
            crd_watch.run(client),
            self._nodes.run(client),
            self._pods.run(client),
            self._devices.run(client, crd_watch),
            *(Reflector(client, each, crd_watch=crd_watch, optional=True).run() for each in self._topologies),
        ]
        tasks = [asyncio.create_task(run) for run in runs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    @property
    def ready(self) -> bool:
        """Whether all nodes, pods and topologies are listed."""
        return self._view.synced and all(cache.synced_or_absent.is_set() for cache in self._topologies)

    def _require_labels(self) -> None:
        keys = {level.key for cache in self._topologies for each in cache for level in each.spec.levels}
        self._view.require({NVIDIA_GPU_CLIQUE, *keys})

    def trees(self, name: str | None) -> tuple[TopologyTree, ...]:
        """The tree of a topology; without a name those of all, or a tree without levels if there is none.
        Raises ConfigError for an unknown name."""
        chosen = chosen_topologies(*self._topologies, name)
        names = (each.metadata.name for each in self._nodes)
        return topology_trees(chosen, node_loads(self._view, self._pods, names, self._accelerators))
