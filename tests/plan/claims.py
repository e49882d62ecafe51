"""Shared claims in a world without a cluster: what the operator sees of them, and what must hold of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from grove.api import labels
from grove.api.cluster import Bare
from grove.api.sets import PodCliqueSet
from grove.plan.expand import Shape
from grove.plan.sharing import of_clique, of_group, of_replica, of_whole_set
from tests.plan.api_server import Body

PROTECTION = "resource.kubernetes.io/delete-protection"


def claims_in_sight(
    claims: Mapping[str, Bare], workload: PodCliqueSet, index: int, owners: Collection[str]
) -> dict[str, Bare]:
    """The claims of a replica: by its label, by those of its cliques and groups, and by name."""
    everywhere = {claim.name for claim in of_whole_set(workload)}
    found = {}
    for name, claim in claims.items():
        carried = claim.metadata.labels
        owner = carried.get(labels.CLIQUE) or carried.get(labels.GROUP)
        if owner in owners or name in everywhere or carried.get(labels.SET_REPLICA) == str(index):
            found[name] = claim
    return found


def wanted_claims(workload: PodCliqueSet, index: int, shape: Shape) -> Iterator[str]:
    """The names of all claims that a replica should have, with pods of the first indices."""
    yield from (claim.name for claim in of_replica(workload, index))
    for group in shape.groups:
        yield from (claim.name for claim in of_group(workload, group))
    for clique in shape.cliques:
        yield from (claim.name for claim in of_clique(workload, clique, range(clique.replicas)))


def referred_in(pod: Body) -> set[str]:
    """The claims that a pod refers to."""
    return {claim["resourceClaimName"] for claim in pod["spec"].get("resourceClaims", ())}
