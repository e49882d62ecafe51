"""States of clusters for tests."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.described import described_state
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState, KindState
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.kube.client.resource import Resource
from grove.operator.caches.resources import resource_of

Body = dict[str, Any]
SETS = resource_of(PodCliqueSet.KIND)
_KINDS = kinds_of(new_caches(operator_setup()), "lease")


def shaped(shape: str = "1x2x2x2", gpus: int = 8, *topologies: str) -> ClusterState:
    """A described cluster, in which every kind is served."""
    return described_state(shape, gpus, _KINDS, topologies)


def with_objects(state: ClusterState, resource: Resource, *bodies: Body) -> ClusterState:
    """The state with further objects of a kind."""
    known = state.kind(resource)
    items = (*known.items, *(Raw(msgspec.json.encode(each)) for each in bodies))
    return replace(state, kinds={**state.kinds, resource: replace(known, items=items, served=True)})


def unreadable(state: ClusterState, resource: Resource, problem: str) -> ClusterState:
    """The state without a kind that could not be read."""
    return replace(state, kinds={**state.kinds, resource: KindState(resource, problem=problem)})
