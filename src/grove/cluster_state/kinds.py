"""Which kinds are read: those that the operator caches, with the same selectors, and its Lease."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.cluster_state.model import ReadKind
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube.client.resource import LEASES, NODES, PODS
from grove.operator.caches.resources import resource_of

if TYPE_CHECKING:  # commands that only need the names of kinds start sooner
    from grove.kube.cache.cache import Cache
    from grove.operator.caches.registry import Caches

GRAPHS = resource_of(DynamoGraphDeployment.KIND)
TOPOLOGIES = resource_of(ClusterTopology.KIND)
TOPOLOGY_BINDINGS = resource_of(ClusterTopologyBinding.KIND)


def kinds_of(caches: Caches, lease: str) -> tuple[ReadKind, ...]:
    """All kinds that an operator with these caches reads, each once, DynamoGraphDeployments, and the Lease of
    that name. Of a kind that one cache reads in part and another one as a whole, all objects are read."""
    found = {resource: ReadKind(resource) for resource in (NODES, PODS, GRAPHS)} | {
        LEASES: ReadKind(LEASES, fields=f"metadata.name={lease}")
    }
    for cache in listed_caches(caches):
        resource = cache.resource
        kind = ReadKind(resource, cache.labels, cache.fields)
        known = found.get(resource)
        found[resource] = kind if known is None or known == kind else ReadKind(resource)
    return tuple(found.values())


def listed_caches(caches: Caches) -> Iterator[Cache[Any]]:
    """The caches that take a plain list of objects."""
    yield from caches.all
    yield from caches.inspected_crds.values()
    yield from caches.devices.all if caches.devices is not None else ()
    yield from caches.volumes.all if caches.volumes is not None else ()
    yield from caches.fabric_nodes.channels
