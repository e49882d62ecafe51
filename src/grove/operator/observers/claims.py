"""Reads shared ResourceClaims, and the templates that sets refer to, from the caches."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import BY_OWNER_LABEL, BY_REPLICA, Caches
from grove.operator.keys import ReplicaKey
from grove.plan.desired.resource_sharing import has_shared_claims
from grove.plan.desired.shared_claims import referred_templates, set_claims
from grove.plan.snapshot import ClaimObjects


class SharedClaims:
    """Finds claims by the labels that name their owners."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def of_set(self, workload: PodCliqueSet) -> ClaimObjects | None:
        """The claims that all replicas of a set share; None if the set shares none."""
        if not workload.spec.template.resource_sharing:
            return None
        return self._shared(workload, ())

    def of_replica(
        self, key: ReplicaKey, workload: PodCliqueSet, groups: Iterable[str], cliques: Iterable[str]
    ) -> ClaimObjects:
        """The claims that the pods of a replica refer to."""
        if not has_shared_claims(workload.spec.template):
            return ClaimObjects()
        cache = self._caches.claims
        found = cache.by_index(BY_REPLICA, key)
        for label, owners in ((labels.GROUP, groups), (labels.CLIQUE, cliques)):
            for name in owners:
                found += cache.by_index(BY_OWNER_LABEL, (key.namespace, label, name))
        return self._shared(workload, found)

    def _shared(self, workload: PodCliqueSet, found: Iterable[PartialObjectMetadata]) -> ClaimObjects:
        caches, namespace = self._caches, workload.metadata.namespace
        if not (caches.claims.synced.is_set() and caches.claim_templates.synced.is_set()):
            return ClaimObjects(visible=False)
        claims_of_set = (caches.claims.get(namespace, claim.name) for claim in set_claims(workload))
        template_keys, cache = referred_templates(workload), caches.claim_templates
        templates = {template_key: cache.get(*template_key) for template_key in template_keys}
        return ClaimObjects(
            {claim.metadata.name: claim for claim in (*found, *filter(None, claims_of_set))},
            {template_key: template for template_key, template in templates.items() if template is not None},
            {
                template_key: cache.undecodable[template_key].reason
                for template_key in template_keys & cache.undecodable.keys()
            },
        )
