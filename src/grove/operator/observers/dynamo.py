"""Reads the snapshot of one DynamoGraphDeployment from the caches: the deployment, the objects created for
it, and the state of the cluster that its plan depends on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.configuration.types import TopologyMode
from grove.api.naming import labels
from grove.api.types.pod import PodPhase
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys, naming
from grove.dynamo.api.kueue_workload import KueueWorkload
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.backends.lws import workload_ref
from grove.dynamo.context import GraphContext, runs_on_grove
from grove.dynamo.graph import Graph
from grove.dynamo.render import auxiliary_objects, gpu_claims, image_pull_secrets, topology_affinity
from grove.dynamo.render.auxiliary_objects import AuxiliaryObjects
from grove.dynamo.render.image_pull_secrets import Secrets
from grove.dynamo.snapshot import ChildObject, GraphSnapshot, StoredGraph, snapshot_of
from grove.kube.cache.cache import Cache
from grove.operator.caches.dynamo import ComponentKey, GraphCaches
from grove.operator.caches.registry import BY_GRAPH, BY_SET, Caches
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import GraphKey, SetKey
from grove.operator.observers import ssh_keys
from grove.plan.desired.template_hash import template_hash
from grove.plan.members.pod_state import terminating


class GraphObserver:
    """Reads snapshots of deployments."""

    def __init__(
        self,
        caches: Caches,
        graph_caches: GraphCaches,
        settings: DynamoSettings,
        states: KeyStates,
    ) -> None:
        self._caches, self._graph_caches, self._settings = caches, graph_caches, settings
        self._nodes, self._states = caches.nodes, states

    async def observe(self, key: GraphKey) -> GraphSnapshot | None:
        """The snapshot of a deployment; None if neither the deployment nor its set exists."""
        stored = self._graph_caches.graphs.get(key.namespace, key.name)
        if stored is not None and (key.namespace, key.name) not in self._graph_caches.graphs.undecodable:
            return await self._deployment(key, stored)
        if self._may_exist(key):
            return GraphSnapshot(None)
        workload = self._workload(key)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return None
        return GraphSnapshot(None, workload=workload)

    def _may_exist(self, key: GraphKey) -> bool:
        """Whether the deployment may exist although it is not in the cache: an event reports that it cannot
        be decoded, its kind is not served at the moment, or a deployment could not even be named. Then its
        set is no orphan."""
        graphs = self._graph_caches.graphs
        return (
            (key.namespace, key.name) in graphs.undecodable
            or ("", "") in graphs.undecodable
            or not graphs.synced.is_set()
        )

    async def _deployment(self, key: GraphKey, stored: StoredGraph) -> GraphSnapshot:
        """The snapshot of a deployment; without children if it cannot be decoded, which the plan reports."""
        facts = replace(self._settings.facts, topologies=self._topologies())
        snapshot = snapshot_of(stored, self._context(), facts)
        if snapshot.parsed is None:
            return snapshot
        graph = snapshot.parsed.graph
        workload = self._workload(key, stored.metadata.uid)
        if workload is not None:
            self._states.of(key).ssh_key = None
        secrets = self._graph_caches.registries(key.namespace)
        cliques = {
            clique.metadata.name: clique for clique in self._objects_of_set(self._caches.cliques, workload)
        }
        groups = {group.metadata.name: group for group in self._objects_of_set(self._caches.groups, workload)}
        children = self._graph_caches.existing(key.namespace, _child_names(graph, snapshot.auxiliary))
        return replace(
            snapshot,
            context=replace(
                snapshot.context,
                claim_templates=self._templates(key, graph),
                node_labels=self._node_labels(graph),
            ),
            workload=workload,
            cliques=cliques,
            groups=groups,
            pull_secrets=secrets,
            started=self._started_components(graph, workload, secrets),
            children=children,
            queued={} if runs_on_grove(graph) else self._queued(key, graph, children),
            ssh_key=await self._ssh_key(key, graph) if workload is None else None,
        )

    def _queued(
        self, key: GraphKey, graph: Graph, children: Mapping[tuple[str, str], ChildObject]
    ) -> dict[str, tuple[KueueWorkload, ...]]:
        """By component, Kueue's Workloads of its pods."""
        return {
            each.name: self._graph_caches.workloads_of(
                children.get(workload_ref(graph, each)), ComponentKey(key.namespace, key.name, each.name)
            )
            for each in graph.components
        }

    def _workload(self, key: GraphKey, uid: str = "") -> PodCliqueSet | None:
        """The set whose controller owner is the deployment, of this UID if one is given."""
        for found in self._caches.sets.by_index(BY_GRAPH, key):
            if not uid or uid in {owner.uid for owner in found.metadata.owner_references}:
                return found
        return None

    def _context(self) -> GraphContext:
        return replace(
            self._settings.context,
            topologies=self._topologies(),
            leader_worker_sets=self._graph_caches.leader_worker_sets,
            inference_pools=self._graph_caches.inference_pools,
            kueue_topologies=self._graph_caches.kueue_topologies,
        )

    def _topologies(self) -> dict[str, tuple[str, ...]]:
        """The levels of each topology, by name. A ClusterTopology overrides a ClusterTopologyBinding."""
        found = (*self._caches.topology_bindings, *self._caches.topologies)
        return {each.metadata.name: tuple(level.domain for level in each.spec.levels) for each in found}

    @staticmethod
    def _objects_of_set(cache: Cache[Any], workload: PodCliqueSet | None) -> list[Any]:
        if workload is None:
            return []
        return cache.by_index(BY_SET, SetKey(workload.metadata.namespace, workload.metadata.name))

    def _started_components(
        self, graph: Graph, workload: PodCliqueSet | None, secrets: Secrets
    ) -> frozenset[str]:
        """Components with started pods of the latest template, if there is a new Secret that could be added
        to them: the pods of other components are replaced anyway."""
        if workload is None or not any(
            image_pull_secrets.has_new(
                image_pull_secrets.matching_secrets(graph, each, secrets, known), known
            )
            for each in graph.components
            for known in (image_pull_secrets.current_secrets_in_set(each, workload),)
        ):
            return frozenset()
        template = workload.spec.template
        latest = {template_hash(clique, template.priority_class_name) for clique in template.cliques}
        pods = (each for each in self._objects_of_set(self._caches.pods, workload) if not terminating(each))
        return frozenset(
            pod.metadata.labels.get(keys.COMPONENT, "")
            for pod in pods
            if pod.metadata.labels.get(labels.TEMPLATE_HASH) in latest
            and pod.status.phase != PodPhase.PENDING
        )

    def _templates(self, key: GraphKey, graph: Graph) -> dict[str, dict[str, Any]]:
        """The ResourceClaimTemplates from which the GPUs of the graph are counted, by name."""
        found = {
            name: self._caches.claim_templates.get(key.namespace, name)
            for name in gpu_claims.template_names(graph)
        }
        return {name: msgspec.json.decode(each.spec.spec) for name, each in found.items() if each is not None}

    def _node_labels(self, graph: Graph) -> frozenset[str] | None:
        """The labels of the graph's topology domains that at least one node has; None unless node affinity
        enforces the constraints."""
        topology = self._settings.context.topology
        if runs_on_grove(graph) or topology.mode is not TopologyMode.AFFINITY or not graph.constrained:
            return None
        required = frozenset(topology_affinity.domain_labels(graph, topology).values())
        self._nodes.require(required)
        found = self._nodes.labels(required)
        return None if found is None else required & {label for node in found for label in node}

    async def _ssh_key(self, key: GraphKey, graph: Graph) -> tuple[str, str] | None:
        if not auxiliary_objects.needs_ssh(graph):
            return None
        state = self._states.of(key)
        if state.ssh_key is None:
            state.ssh_key = await asyncio.to_thread(ssh_keys.generate_key_pair)
        return state.ssh_key


def _child_names(graph: Graph, auxiliary: AuxiliaryObjects) -> Iterator[tuple[str, str]]:
    for body in (*auxiliary.owned, *auxiliary.shared):
        yield body["kind"], body["metadata"]["name"]
    for component in graph.components:
        yield workload_ref(graph, component)
        yield ScalingAdapter.KIND.name, naming.child_object(graph, component)
    for claim in graph.claims:
        yield "PersistentVolumeClaim", claim.name
