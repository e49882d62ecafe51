"""Where a set asks for shared claims; apart from the rules on them, for readers that ask only whether."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grove.api.types.common import ResourceSharing
from grove.api.types.podcliqueset import PodCliqueSetTemplate


def has_shared_claims(template: PodCliqueSetTemplate) -> bool:
    """Whether any part of a set shares claims."""
    return any(sharing_lists(template))


def sharing_lists(template: PodCliqueSetTemplate) -> Iterator[Sequence[ResourceSharing]]:
    """The claims that the set, its groups and its cliques share."""
    yield template.resource_sharing
    yield from (group.resource_sharing for group in template.pod_clique_scaling_groups)
    yield from (clique.resource_sharing for clique in template.cliques)
