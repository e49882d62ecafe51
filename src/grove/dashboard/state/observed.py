"""The objects that the dashboard reads, which summaries are outdated by a change of them, and the summaries
themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cluster_state.operator_setup import OperatorSetup, new_caches, operator_setup
from grove.dashboard.model import GangSummary, NodeCells, SetSummary, TopologySummary
from grove.dashboard.state.gpus.claimed_gpus import ClaimedGpus, Reader
from grove.dashboard.state.gpus.node_use import NodeUse
from grove.dashboard.state.gpus.pod_gpus import PodGpus
from grove.dashboard.state.summaries import (
    gang_summary,
    level_labels,
    node_cells,
    set_summary,
    topology_summary,
)
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import ObjectRef
from grove.explanation.operator_lease import Leases
from grove.explanation.reading import GRAPHS
from grove.explanation.subtree import Objects, Subtree, subtree
from grove.kube.cache.cache import Cache, HasMetadata
from grove.kube.client.resource import LEASES
from grove.kube.leader.lease import Lease
from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.registry import BY_GRAPH, BY_REPLICA, BY_SET
from grove.operator.keys import GraphKey, SetKey, replica_of, set_of
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.free_slots import accelerator_names
from grove.topology.placement.needs.devices import DeviceCatalog
from grove.views.pod_reason import ReasonedPod
from grove.views.topology.topologies import chosen_topologies

Key = tuple[str, str]


class Outdated(Struct):
    """Which summaries must be computed again: nodes by name, gangs and sets by namespace and name."""

    nodes: set[str] = set()
    gangs: set[Key] = set()
    sets: set[Key] = set()


class Observed:
    """All objects. `lease`: the name of the Lease of operators, with a namespace and a slash before it if it
    is known. `changed` is called when a summary becomes outdated. With `nodes`, also the nodes of the cluster
    and all its pods."""

    def __init__(
        self,
        lease: str,
        *,
        nodes: bool,
        changed: Callable[[], None] = lambda: None,
        setup: OperatorSetup | None = None,
    ) -> None:
        setup = setup or operator_setup()
        self.caches = caches = new_caches(setup)
        caches.pods.as_type = ReasonedPod  # pages show why containers wait, which the operator does not read
        self.graphs: Cache[DynamoGraphDeployment] = Cache(GRAPHS, DynamoGraphDeployment)
        place, _, name = lease.rpartition("/")
        self.lease_cache: Cache[Lease] = Cache(
            LEASES, Lease, namespace=place or None, fields=f"metadata.name={name}"
        )
        self._changed, self._outdated = changed, Outdated()
        self._revisions: dict[Key, int] = {}
        self._first_revisions: dict[str, int] = {}
        """By namespace, the last revision of a set that was deleted: another one of its name goes on from it.
        Not one number of all, from which viewers would learn what happens in other namespaces."""
        self._accelerators = accelerator_names(setup.fabrics)
        self._claimed = ClaimedGpus(caches, self._accelerators, self._device_catalog, self._on_claimed)
        self._gpus = PodGpus(self._accelerators, self._claimed)
        self.leases: Leases = None
        """Those by which reasons are found; the caller keeps them up to date."""
        self.topologies: tuple[TopologySummary, ...] = ()
        self._labels: tuple[str, ...] = ()
        self.view: ClusterView | None = None
        self._use: NodeUse | None = None
        if nodes:
            assert caches.cluster_pods is not None
            assert caches.devices is not None
            caches.devices.require()
            self.view = ClusterView(caches.nodes, caches.cluster_pods, caches.devices)
            self.view.subscribe(changed)
            self.view.subscribe_device_catalog(self._claimed.on_catalog)
            self.view.require((NVIDIA_GPU_CLIQUE,))
            self._use = NodeUse(self.view, caches.cluster_pods, caches.devices, self._on_node)
        self._subscribe()

    def _subscribe(self) -> None:
        caches = self.caches
        caches.sets.subscribe(self._on_set)
        caches.groups.subscribe(self._on_group)
        caches.cliques.subscribe(self._on_member)
        caches.pods.subscribe(self._on_member)
        caches.gangs.subscribe(self._on_gang)
        self.graphs.subscribe(self._on_graph)
        for cache in (caches.topologies, caches.topology_bindings):
            cache.subscribe(self._on_topology)

    # Which summaries are outdated.

    def take_outdated(self) -> Outdated:
        """What has become outdated since the last call."""
        if self.view is not None:
            self._outdated.nodes |= self.view.take_changed_nodes()
        found, self._outdated = self._outdated, Outdated()
        return found

    def put_back(self, outdated: Outdated) -> None:
        """What was taken is still outdated."""
        self._outdated.nodes |= outdated.nodes
        self._outdated.gangs |= outdated.gangs
        self._outdated.sets |= outdated.sets

    def mark_workloads(self) -> None:
        """All reasons may have changed."""
        self._outdated.sets.update(map(_key, self.caches.sets))
        self._outdated.gangs.update(map(_key, self.caches.gangs))
        self._changed()

    def _on_node(self, name: str) -> None:
        self._outdated.nodes.add(name)
        self._changed()

    def _on_claimed(self, reader: Reader) -> None:
        match reader:
            case (namespace, gang):
                self._outdated.gangs.add((namespace, gang))
            case _:
                self._outdated.nodes.update(reader)
        self._changed()

    def _on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        found = new or old
        assert found is not None
        key = SetKey(*_key(found))
        self._outdate_set(key)
        if old is None or new is None or _of_gangs(old) != _of_gangs(new):
            self._outdated.gangs.update(map(_key, self.caches.gangs.by_index(BY_SET, key)))

    def _on_group(self, old: Any, new: Any) -> None:
        self._on_member(old, new)
        found = new or old
        if (old is None or new is None or _of_gangs(old) != _of_gangs(new)) and (
            replica := replica_of(found.metadata)
        ):
            self._outdated.gangs.update(map(_key, self.caches.gangs.by_index(BY_REPLICA, replica)))

    def _on_member(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """A pod, clique or group of a set changed, and may be in a gang."""
        for found in filter(None, (old, new)):
            if gang := found.metadata.labels.get(labels.GANG):
                self._outdated.gangs.add((found.metadata.namespace, gang))
            self._outdate_set(set_of(found.metadata))

    def _on_gang(self, old: PodGang | None, new: PodGang | None) -> None:
        for found in filter(None, (old, new)):
            self._outdated.gangs.add(_key(found))
            self._outdate_set(set_of(found.metadata))

    def _on_graph(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        for found in filter(None, (new or old,)):
            for each in self.caches.sets.by_index(BY_GRAPH, GraphKey(*_key(found))):
                self._outdate_set(SetKey(*_key(each)))

    def _on_topology(self, _old: object, _new: object) -> None:
        chosen = chosen_topologies(self.caches.topologies, self.caches.topology_bindings, None)
        self.topologies = tuple(map(topology_summary, chosen))
        known, self._labels = self._labels, level_labels(self.topologies)
        if self.view is not None:
            self.view.require(self._labels)
            if known != self._labels:
                self.view.mark_all_changed()
        self._changed()

    def _outdate_set(self, key: SetKey | None) -> None:
        if key is not None:
            self._revisions[key] = self._revision(key) + 1
            self._outdated.sets.add(key)
        self._changed()

    # Summaries.

    def node(self, name: str) -> NodeCells | None:
        """The cells of a node; None if it does not exist."""
        if self.view is None or self._use is None or (node := self.view.node(name)) is None:
            return None
        pods, claimed = self._use.pods(name), self._use.claimed(name)
        awaited = self._claimed.reading((name,))
        return node_cells(node, pods, claimed, awaited, self._labels, self._accelerators)

    def gang(self, key: Key, now: float) -> GangSummary | None:
        """The summary of a gang; None if it does not exist."""
        self._claimed.forget(key)
        gang = self.caches.gangs.get(*key)
        if gang is None:
            return None
        about = ObjectRef(PodGang.KIND.name, gang.metadata.name, gang.metadata.namespace)
        objects = self._replica(gang.metadata)
        tree = subtree(objects, about) if objects is not None else Subtree(about, gangs=(gang,))
        return gang_summary(tree, gang, self.leases, partial(self._gpus, reader=key), now)

    def _device_catalog(self) -> DeviceCatalog | None:
        return self.view.device_catalog if self.view is not None else None

    def _replica(self, meta: ObjectMeta) -> Objects | None:
        """The objects of the replica that an object belongs to, with its set; None if it belongs to none."""
        caches, replica = self.caches, replica_of(meta)
        if replica is None:
            return None
        workload = caches.sets.get(replica.namespace, replica.set_name)
        of_kind = partial(_by_index, index=BY_REPLICA, value=replica)
        return Objects(
            (),
            (workload,) if workload is not None else (),
            of_kind(caches.groups),
            of_kind(caches.cliques),
            of_kind(caches.gangs),
            of_kind(caches.pods),
        )

    def set(self, key: Key, now: float) -> SetSummary | None:
        """The summary of a set; None if it does not exist."""
        if (workload := self.caches.sets.get(*key)) is None:
            last, namespace = self._revisions.pop(key, 0), key[0]
            self._first_revisions[namespace] = max(self._first_revisions.get(namespace, 0), last)
            return None
        return set_summary(self._tree(workload), self.leases, self._revision(key), now)

    def _revision(self, key: Key) -> int:
        return self._revisions.get(key, self._first_revisions.get(key[0], 0))

    def _tree(self, workload: PodCliqueSet) -> Subtree:
        meta, caches = workload.metadata, self.caches
        of_kind = partial(_by_index, index=BY_SET, value=SetKey(meta.namespace, meta.name))
        owner = owning_graph(meta)
        return Subtree(
            ObjectRef(PodCliqueSet.KIND.name, meta.name, meta.namespace),
            self.graphs.get(owner.namespace, owner.name) if owner is not None else None,
            workload,
            of_kind(caches.groups),
            of_kind(caches.cliques),
            of_kind(caches.gangs),
            of_kind(caches.pods),
        )

    def pods_of_set(self, key: Key) -> int:
        """How many pods a set has."""
        return len(self.caches.pods.by_index(BY_SET, key))

    # For pages.

    def node_pods(self, node: str) -> tuple[ClusterPod, ...]:
        """The pods that use a node or are nominated for it."""
        return tuple(self._use.pods(node)) if self._use is not None else ()

    def objects(self, namespace: str) -> Objects:
        """The workloads of one namespace."""
        caches = self.caches
        kinds: tuple[Cache[Any], ...] = (
            self.graphs, caches.sets, caches.groups, caches.cliques, caches.gangs, caches.pods,
        )  # fmt: skip
        return Objects(
            *(tuple(each for each in cache if each.metadata.namespace == namespace) for cache in kinds)
        )

    def namespaces(self) -> frozenset[str]:
        """The namespaces that have workloads."""
        kinds: tuple[Cache[Any], ...] = (self.graphs, self.caches.sets, self.caches.gangs)
        return frozenset(each.metadata.namespace for cache in kinds for each in cache)


def _by_index(cache: Cache[Any], index: str, value: Any) -> tuple[Any, ...]:
    return tuple(cache.by_index(index, value))


def _key(found: HasMetadata) -> Key:
    return found.metadata.namespace, found.metadata.name


def _of_gangs(found: Any) -> object:
    """What the reasons of gangs depend on, of a set or group."""
    status = found.status
    return found.metadata.generation, found.metadata.annotations, status.conditions, status.last_errors
