"""Collects the facts about the cluster that the admission rules of DynamoGraphDeployments need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from grove.dynamo.admission.topology_rules import NAMES
from grove.dynamo.context import GraphContext
from grove.rules.model import Facts
from grove.webhooks.cluster_facts import ClusterFacts, FactCaches

Body = dict[str, Any]


class GraphClusterFacts:
    """Facts for one review at a time."""

    def __init__(
        self,
        caches: FactCaches,
        cluster_facts: ClusterFacts,
        static_context: GraphContext,
        leader_worker_sets: Callable[[], bool] = lambda: False,
        inference_pools: Callable[[], bool] = lambda: True,
    ) -> None:
        self._caches, self._cluster_facts, self._static_context = caches, cluster_facts, static_context
        self._leader_worker_sets, self._inference_pools = leader_worker_sets, inference_pools

    async def context_for(self, body: Body) -> GraphContext:
        """The static context, every topology in the caches, and those that the deployment refers to, which
        may have been created together with it. Raises ClusterLookupFailed."""
        found = {
            each.metadata.name: tuple(level.domain for level in each.spec.levels)
            for each in (*self._caches.topology_bindings, *self._caches.topologies)
        }
        named = {*_topology_names(body), self._static_context.topology.default_topology_name} - {"", *found}
        if named:
            found |= (await self._cluster_facts.facts_with_topologies(named)).topologies
        return replace(
            self._static_context,
            topologies=found,
            leader_worker_sets=self._leader_worker_sets(),
            inference_pools=self._inference_pools(),
        )

    def facts(self, context: GraphContext) -> Facts:
        """The same topologies as facts for Grove's own rules."""
        return replace(self._cluster_facts.static_facts, topologies=context.topologies)


def _topology_names(body: Body) -> set[str]:
    spec = body.get("spec")
    constraint = spec.get("topologyConstraint") if isinstance(spec, dict) else None
    values = [constraint.get(key) for key in NAMES] if isinstance(constraint, dict) else []
    return {name for name in values if isinstance(name, str)}
