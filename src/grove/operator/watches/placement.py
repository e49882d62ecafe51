"""The watches of what the placement of gangs depends on besides free nodes: what their claims refer to, and
the labels of the nodes that their pods are on."""

from __future__ import annotations

from collections.abc import Iterator

from grove import timing
from grove.api.types.cluster.device_objects import AllocatedClaim
from grove.api.types.cluster.volume_objects import StorageClass, Volume, VolumeClaim
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.fabrics.requirements import domain_requirements
from grove.kube.client.resource import PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from grove.operator.caches.registry import BY_NODE, BY_POD_CLAIM, Caches
from grove.operator.caches.volumes import Volumes
from grove.operator.keys import ReplicaKey, SetKey, replica_of
from grove.operator.observers.claim_sources import claims_devices
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.enqueue_slices import FanOut, all_replicas
from grove.operator.watches.fabric import consuming_replicas
from grove.operator.watches.table import Watch
from grove.plan.desired.pod_claims import claims_of_set

Keys = Iterator[ReplicaKey | FanOut]


def placement_watches(
    caches: Caches, view: ClusterView, volumes: Volumes, fabric_lookup: FabricLookup
) -> tuple[Watch, ...]:
    """The watches of device classes, claim templates, volumes and nodes."""
    find = _PlacementKeys(caches, view, fabric_lookup)
    claims = () if caches.devices is None else (caches.devices.claims,)
    return (
        Watch(view.subscribe_labels, find.replicas_on_node, delay=timing.BATCH_DELAY),
        Watch(view.subscribe_device_catalog, find.sets_with_devices),
        Watch(caches.claim_templates, find.of_template, created_or_deleted),
        *(Watch(cache, find.of_claim, created_or_deleted) for cache in claims),
        Watch(volumes.claims, find.of_volume_claim, claim_or_volume_changed),
        Watch(volumes.volumes, find.of_volume, claim_or_volume_changed),
        *(Watch(cache.on_synced_or_absent, find.sets_with_volumes) for cache in volumes.all),
        Watch(volumes.classes, find.of_storage_class, storage_class_changed),
    )


def created_or_deleted(old: object, new: object) -> bool:
    """An object appeared or is gone. The spec of a claim template never changes."""
    return old is None or new is None


def claim_or_volume_changed(old: VolumeClaim | Volume | None, new: VolumeClaim | Volume | None) -> bool:
    """A volume or its claim appeared, is bound, or is gone."""
    if old is None or new is None or old.spec != new.spec:
        return True
    return isinstance(old, VolumeClaim) and isinstance(new, VolumeClaim) and old.status != new.status


def storage_class_changed(old: StorageClass | None, new: StorageClass | None) -> bool:
    """What a class says about volumes and nodes has changed, or which class is the default."""
    return (
        old is None
        or new is None
        or old.volume_binding_mode != new.volume_binding_mode
        or old.allowed_topologies != new.allowed_topologies
        or old.metadata.annotations != new.metadata.annotations
    )


class _PlacementKeys:
    """Looks up the replicas whose gangs depend on an object."""

    def __init__(self, caches: Caches, view: ClusterView, fabric_lookup: FabricLookup) -> None:
        self._caches, self._view, self._fabric_lookup = caches, view, fabric_lookup

    def replicas_on_node(self, node: str) -> set[ReplicaKey]:
        """The replicas that have pods on a node: their statuses say where they are."""
        found = (replica_of(pod.metadata) for pod in self._caches.pods.by_index(BY_NODE, node))
        return {key for key in found if key is not None}

    def of_template(
        self, old: ResourceClaimTemplateObject | None, new: ResourceClaimTemplateObject | None
    ) -> Keys:
        """The replicas whose pods name a claim template, or join a fabric domain by it."""
        found = new or old
        assert found is not None
        namespace, name = found.metadata.namespace, found.metadata.name
        yield from self._naming(RESOURCE_CLAIM_TEMPLATES.kind, namespace, name)
        for domain in self._fabric_lookup.domains_of_template(namespace, name):
            yield from consuming_replicas(self._caches, self._fabric_lookup, domain)

    def of_claim(self, old: AllocatedClaim | None, new: AllocatedClaim | None) -> Keys:
        """The replicas whose pods name a claim."""
        found = new or old
        assert found is not None
        return self._naming(RESOURCE_CLAIMS.kind, found.metadata.namespace, found.metadata.name)

    def of_volume_claim(self, old: VolumeClaim | None, new: VolumeClaim | None) -> Keys:
        """The replicas whose pods have a volume by this claim."""
        found = new or old
        assert found is not None
        return self._naming(PERSISTENT_VOLUME_CLAIMS.kind, found.metadata.namespace, found.metadata.name)

    def of_volume(self, old: Volume | None, new: Volume | None) -> Keys:
        """The same for the claim that a volume is bound to."""
        found = new or old
        assert found is not None
        if (claim := found.spec.claim_ref) is not None:
            yield from self._naming(PERSISTENT_VOLUME_CLAIMS.kind, claim.namespace, claim.name)

    def _naming(self, kind: str, namespace: str, name: str) -> Keys:
        for workload in self._caches.sets.by_index(BY_POD_CLAIM, (kind, namespace, name)):
            yield all_replicas(self._caches, SetKey(namespace, workload.metadata.name), workload)

    def sets_with_devices(self) -> Keys:
        """All replicas of sets that need devices: device classes are listed, or have changed."""
        for workload in self._caches.sets:
            claims, in_fabric = claims_of_set(workload), domain_requirements(workload, self._caches.fabrics)
            if self._view.requests_devices(claims) or in_fabric or claims_devices(workload, claims):
                meta = workload.metadata
                yield all_replicas(self._caches, SetKey(meta.namespace, meta.name), workload)

    def of_storage_class(self, _old: StorageClass | None, _new: StorageClass | None) -> Keys:
        """All replicas of sets with volumes by claims. Classes are few, and hardly ever change."""
        return self.sets_with_volumes()

    def sets_with_volumes(self) -> Keys:
        """All replicas of sets with volumes by claims: these are listed."""
        for workload in self._caches.sets:
            if any(each.volumes or each.ephemeral for each in claims_of_set(workload)):
                meta = workload.metadata
                yield all_replicas(self._caches, SetKey(meta.namespace, meta.name), workload)
