"""The owners of objects that are created for DynamoGraphDeployments and topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.operator.keys import GraphKey

if TYPE_CHECKING:
    from grove.kube.cache.cache import HasMetadata


def owning_topology(found: HasMetadata) -> str:
    """The topology that a scheduler's topology object is created for; empty if the operator does not manage
    that object."""
    kinds = {ClusterTopology.KIND.name, ClusterTopologyBinding.KIND.name}
    if found.metadata.labels.get(labels.MANAGED_BY) != labels.OPERATOR:
        return ""
    owners = (owner for owner in found.metadata.owner_references if owner.controller and owner.kind in kinds)
    return next((owner.name for owner in owners), "")


def owning_graph(metadata: ObjectMeta) -> GraphKey | None:
    """The DynamoGraphDeployment that is the controller owner of an object."""
    kind = DynamoGraphDeployment.KIND
    for owner in metadata.owner_references:
        group, _, _ = owner.api_version.partition("/")
        if owner.controller and (group, owner.kind) == (kind.group, kind.name):
            return GraphKey(metadata.namespace, owner.name)
    return None
