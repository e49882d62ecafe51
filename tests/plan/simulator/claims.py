"""Shared claims in the simulator: which of them the operator observes, and which should exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import ReplicaLayout
from grove.plan.desired.shared_claims import clique_claims, group_claims, replica_claims, set_claims
from tests.plan.simulator.api_server import Body

PROTECTION = "resource.kubernetes.io/delete-protection"


def claims_in_sight(
    claims: Mapping[str, PartialObjectMetadata], workload: PodCliqueSet, index: int, owners: Collection[str]
) -> dict[str, PartialObjectMetadata]:
    """The claims of a replica: by its label, by those of its cliques and groups, and by name."""
    everywhere = {claim.name for claim in set_claims(workload)}
    found = {}
    for name, claim in claims.items():
        object_labels = claim.metadata.labels
        owner = object_labels.get(labels.CLIQUE) or object_labels.get(labels.GROUP)
        if owner in owners or name in everywhere or object_labels.get(labels.SET_REPLICA) == str(index):
            found[name] = claim
    return found


def wanted_claims(workload: PodCliqueSet, index: int, layout: ReplicaLayout) -> Iterator[str]:
    """The names of all claims that a replica should have, with pods of the first indices."""
    yield from (claim.name for claim in replica_claims(workload, index))
    for group in layout.groups:
        yield from (claim.name for claim in group_claims(workload, group))
    for clique in layout.cliques:
        yield from (claim.name for claim in clique_claims(workload, clique, range(clique.replicas)))


def referred_in(pod: Body) -> set[str]:
    """The claims that a pod refers to."""
    return {claim["resourceClaimName"] for claim in pod["spec"].get("resourceClaims", ())}
