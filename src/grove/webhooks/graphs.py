"""What the rules of DynamoGraphDeployments are told of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from grove.dynamo.surroundings import Surroundings
from grove.dynamo.topology import NAMES
from grove.rules.model import Facts
from grove.webhooks.sight import Known, Sight

Body = dict[str, Any]


class GraphSight:
    """Facts for one review at a time."""

    def __init__(
        self,
        known: Known,
        sight: Sight,
        standing: Surroundings,
        leader_worker_sets: Callable[[], bool] = lambda: False,
    ) -> None:
        self._known, self._sight, self._standing = known, sight, standing
        self._leader_worker_sets = leader_worker_sets

    async def around(self, body: Body) -> Surroundings:
        """The standing facts, every topology in the caches, and those that the deployment means: they may
        have been made in the same breath. Raises Unseen."""
        found = {
            each.metadata.name: tuple(level.domain for level in each.spec.levels)
            for each in (*self._known.topology_bindings, *self._known.topologies)
        }
        named = {*_named(body), self._standing.topology.default_topology_name} - {"", *found}
        if named:
            found |= (await self._sight.facts_on(named)).topologies
        served = self._leader_worker_sets()
        return replace(self._standing, topologies=found, leader_worker_sets=served)

    def facts(self, known: Surroundings) -> Facts:
        """What Grove's own rules are told of the same."""
        return replace(self._sight.standing, topologies=known.topologies)


def _named(body: Body) -> set[str]:
    spec = body.get("spec")
    constraint = spec.get("topologyConstraint") if isinstance(spec, dict) else None
    said = [constraint.get(key) for key in NAMES] if isinstance(constraint, dict) else []
    return {name for name in said if isinstance(name, str)}
