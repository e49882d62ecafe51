"""PersistentVolumes, their claims and StorageClasses, with the fields that decide on nodes."""

from __future__ import annotations

from grove.api.meta import Interned, ObjectMeta
from grove.api.types.cluster.scheduling_pod import NodeSelectorTerms
from grove.api.wire import Wire


class VolumeClaimSpec(Wire, frozen=True):
    """The volume that a claim is bound to, or the class that provisions one."""

    volume_name: str = ""
    storage_class_name: str | None = None


class VolumeClaimStatus(Wire, frozen=True):
    """Whether a claim is bound."""

    phase: str = ""


class VolumeClaim(Wire, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()


class VolumeNodeAffinity(Wire, frozen=True):
    """The nodes that can use a volume."""

    required: NodeSelectorTerms | None = None


class ClaimReference(Wire, frozen=True):
    """The claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""


class VolumeSpec(Wire, frozen=True):
    """The nodes of a volume, and its claim."""

    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None


class Volume(Wire, frozen=True):
    """A PersistentVolume."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()


class AllowedLabel(Interned, frozen=True):
    """A node label, and the values that it may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class AllowedTopology(Interned, frozen=True):
    """Node labels, all of which must match."""

    match_label_expressions: tuple[AllowedLabel, ...] = ()


class StorageClass(Wire, frozen=True):
    """A StorageClass."""

    metadata: ObjectMeta
    volume_binding_mode: str = ""
    allowed_topologies: tuple[AllowedTopology, ...] = ()
