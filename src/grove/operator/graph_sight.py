"""What there is to see of one DynamoGraphDeployment: the deployment, all that was made of it, and what of the
cluster decides about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api import labels
from grove.api.config import TopologyMode
from grove.api.pods import PodPhase
from grove.api.sets import PodCliqueSet
from grove.dynamo import closeness, companions, devices, keys, naming, pulling
from grove.dynamo.adapters import ScalingAdapter
from grove.dynamo.components import carrier
from grove.dynamo.graph import Graph
from grove.dynamo.normalise import graph as normalised
from grove.dynamo.pulling import Secrets
from grove.dynamo.reading import read
from grove.dynamo.seen import Seen, StoredGraph, raw
from grove.dynamo.surroundings import Surroundings, runs_on_grove
from grove.kube.cache import Cache
from grove.operator import ssh
from grove.operator.caches import BY_SET, Caches
from grove.operator.graph_caches import GraphCaches, GraphKey, graph_of
from grove.operator.graph_layer import Layer
from grove.operator.keys import SetKey
from grove.operator.nodes import Nodes
from grove.plan.hashes import template_hash
from grove.plan.pods import terminating
from grove.rules.shape import Misshapen


class Sight:
    """Looks at deployments, one at a time. `sets` are the names of their sets, kept up to date by others."""

    def __init__(
        self, caches: Caches, known: GraphCaches, layer: Layer, nodes: Nodes, sets: Mapping[GraphKey, str]
    ) -> None:
        self._caches, self._known, self._layer = caches, known, layer
        self._nodes, self._sets = nodes, sets
        self._keys: dict[GraphKey, tuple[str, str]] = {}
        """Pairs for SSH that are yet to be stored."""

    async def of(self, key: GraphKey, stored: StoredGraph) -> Seen:
        """All that is known about the deployment now."""
        seen = Seen(
            stored=stored,
            surroundings=self._surroundings(),
            facts=replace(self._layer.facts, topologies=self._topologies()),
        )
        try:
            graph = normalised(read(raw(stored)))
        except Misshapen:
            return seen
        workload = self.workload(key, stored.metadata.uid)
        if workload is not None:
            self._keys.pop(key, None)
        secrets = self._known.registries(key.namespace)
        names = {clique.metadata.name: clique for clique in self._parts(self._caches.cliques, workload)}
        groups = {group.metadata.name: group for group in self._parts(self._caches.groups, workload)}
        return replace(
            seen,
            surroundings=replace(
                seen.surroundings,
                claim_templates=self._templates(key, graph),
                node_labels=self._node_labels(graph),
            ),
            workload=workload,
            cliques=names,
            groups=groups,
            pull_secrets=secrets,
            started=self._started(graph, workload, secrets),
            children=self._known.found(key.namespace, _named(graph)),
            ssh_key=await self._key(key, graph) if workload is None else None,
        )

    def workload(self, key: GraphKey, uid: str = "") -> PodCliqueSet | None:
        """The set that the deployment controls."""
        found = self._caches.sets.get(key.namespace, self._sets.get(key, ""))
        if found is None or graph_of(found.metadata) != key:
            return None
        owners = {owner.uid for owner in found.metadata.owner_references}
        return found if not uid or uid in owners else None

    def forget(self, key: GraphKey) -> None:
        """The deployment is gone."""
        self._keys.pop(key, None)

    def _surroundings(self) -> Surroundings:
        return replace(
            self._layer.surroundings,
            topologies=self._topologies(),
            leader_worker_sets=self._known.leader_worker_sets,
            kueue_topologies=self._known.kueue_topologies,
        )

    def _topologies(self) -> dict[str, tuple[str, ...]]:
        """Of two kinds with one name, the ClusterTopology counts."""
        found = (*self._caches.topology_bindings, *self._caches.topologies)
        return {each.metadata.name: tuple(level.domain for level in each.spec.levels) for each in found}

    @staticmethod
    def _parts(cache: Cache[Any], workload: PodCliqueSet | None) -> list[Any]:
        if workload is None:
            return []
        return cache.by_index(BY_SET, SetKey(workload.metadata.namespace, workload.metadata.name))

    def _started(self, graph: Graph, workload: PodCliqueSet | None, secrets: Secrets) -> frozenset[str]:
        """Components that have pods of their latest template at work, if a Secret has come that they could be
        given: others are still to be replaced."""
        if workload is None or not any(
            pulling.are_new(pulling.found(graph, each, secrets, known), known)
            for each in graph.components
            for known in (pulling.given_in_set(each, workload),)
        ):
            return frozenset()
        template = workload.spec.template
        latest = {template_hash(clique, template.priority_class_name) for clique in template.cliques}
        pods = (each for each in self._parts(self._caches.pods, workload) if not terminating(each))
        return frozenset(
            pod.metadata.labels.get(keys.COMPONENT, "")
            for pod in pods
            if pod.metadata.labels.get(labels.TEMPLATE_HASH) in latest
            and pod.status.phase != PodPhase.PENDING
        )

    def _templates(self, key: GraphKey, graph: Graph) -> dict[str, dict[str, Any]]:
        """Those that its GPUs are counted by."""
        found = {name: self._caches.claim_templates.get(key.namespace, name) for name in devices.named(graph)}
        return {name: msgspec.json.decode(each.spec.spec) for name, each in found.items() if each is not None}

    def _node_labels(self, graph: Graph) -> frozenset[str] | None:
        """Those that its domains are and that a node has, where affinity enforces its constraints."""
        topology = self._layer.surroundings.topology
        if runs_on_grove(graph) or topology.mode is not TopologyMode.AFFINITY or not graph.constrained:
            return None
        wanted = frozenset(closeness.wanted(graph, topology).values())
        self._nodes.want(wanted)
        found = self._nodes.labels(wanted)
        return None if found is None else wanted & {label for node in found for label in node}

    async def _key(self, key: GraphKey, graph: Graph) -> tuple[str, str] | None:
        if not companions.needs_ssh(graph):
            return None
        if key not in self._keys:
            self._keys[key] = await asyncio.to_thread(ssh.pair)
        return self._keys[key]


def _named(graph: Graph) -> Iterator[tuple[str, str]]:
    for body in (*companions.owned(graph), *companions.shared(graph)):
        yield body["kind"], body["metadata"]["name"]
    for component in graph.components:
        yield carrier(graph, component)
        yield ScalingAdapter.KIND.name, naming.child(graph, component)
    for claim in graph.claims:
        yield "PersistentVolumeClaim", claim.name
