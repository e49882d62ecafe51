"""What the caches know of the claims that sets share, and of the templates that they refer to."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import labels
from grove.api.cluster import Bare
from grove.api.sets import PodCliqueSet
from grove.operator.caches import BY_HOLDER, BY_REPLICA, Caches
from grove.operator.keys import ReplicaKey
from grove.plan.sharing import Shared, of_whole_set, referred_templates, shares


class SharedClaims:
    """Finds claims by the labels that say whose they are."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def of_set(self, workload: PodCliqueSet) -> Shared | None:
        """What all replicas of a set share; None if that is nothing."""
        if not workload.spec.template.resource_sharing:
            return None
        return self._shared(workload, ())

    def of_replica(
        self, key: ReplicaKey, workload: PodCliqueSet, groups: Iterable[str], cliques: Iterable[str]
    ) -> Shared:
        """What the pods of a replica refer to."""
        if not shares(workload.spec.template):
            return Shared()
        cache = self._caches.claims
        found = cache.by_index(BY_REPLICA, key)
        for label, holders in ((labels.GROUP, groups), (labels.CLIQUE, cliques)):
            for name in holders:
                found += cache.by_index(BY_HOLDER, (key.namespace, label, name))
        return self._shared(workload, found)

    def _shared(self, workload: PodCliqueSet, found: Iterable[Bare]) -> Shared:
        caches, namespace = self._caches, workload.metadata.namespace
        if not (caches.claims.synced.is_set() and caches.claim_templates.synced.is_set()):
            return Shared(visible=False)
        everywhere = (caches.claims.get(namespace, claim.name) for claim in of_whole_set(workload))
        places, cache = referred_templates(workload), caches.claim_templates
        templates = {place: cache.get(*place) for place in places}
        return Shared(
            {claim.metadata.name: claim for claim in (*found, *filter(None, everywhere))},
            {place: template for place, template in templates.items() if template is not None},
            {place: cache.undecodable[place].reason for place in places & cache.undecodable.keys()},
        )
