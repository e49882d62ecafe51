"""Which claims the pods of a set have by their templates: on devices, and on volumes."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec import Struct

from grove.api.types.pod import PodClaim, Resources
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.wire import Wire


class _VolumeClaimSource(Wire, frozen=True):
    claim_name: str = ""


class _TemplateSpec(Wire, frozen=True):
    storage_class_name: str | None = None


class _VolumeClaimTemplate(Wire, frozen=True):
    spec: _TemplateSpec = _TemplateSpec()


class _EphemeralSource(Wire, frozen=True):
    volume_claim_template: _VolumeClaimTemplate = _VolumeClaimTemplate()


class _Volume(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: _VolumeClaimSource | None = None
    ephemeral: _EphemeralSource | None = None


class _Container(Wire, frozen=True):
    resources: Resources | None = None


class _Claiming(Wire, frozen=True):
    """The parts of a pod spec that have claims, or request devices."""

    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class PodClaims(Struct, frozen=True):
    """The claims of a pod."""

    devices: tuple[PodClaim, ...] = ()
    volumes: tuple[str, ...] = ()
    """The names of PersistentVolumeClaims."""
    ephemeral: tuple[tuple[str, str], ...] = ()
    """Volumes that are created with the pod: their name and StorageClass, empty for the default class."""
    requested: frozenset[str] = frozenset()
    """The extended resources that the pod requests."""

    @property
    def templates(self) -> frozenset[str]:
        """The ResourceClaimTemplates that the pod names."""
        return frozenset(each.resource_claim_template_name for each in self.devices) - {""}

    @property
    def named(self) -> frozenset[str]:
        """The existing ResourceClaims that the pod names."""
        return frozenset(each.resource_claim_name for each in self.devices) - {""}


_decoder = msgspec.json.Decoder(_Claiming)


@lru_cache(maxsize=1024)
def claims_in(pod_spec: bytes) -> PodClaims:
    """The claims in a pod spec."""
    found = _decoder.decode(pod_spec)
    claims = (each.persistent_volume_claim for each in found.volumes)
    return PodClaims(
        found.resource_claims,
        tuple(each.claim_name for each in claims if each is not None),
        tuple(
            (each.name, each.ephemeral.volume_claim_template.spec.storage_class_name or "")
            for each in found.volumes
            if each.ephemeral is not None
        ),
        frozenset(
            name
            for container in (*found.containers, *found.init_containers)
            if container.resources is not None
            for name in (*container.resources.requests, *container.resources.limits)
            if "/" in name
        ),
    )


def claims_of_set(workload: PodCliqueSet) -> tuple[PodClaims, ...]:
    """The claims of the pods of each clique."""
    return tuple(claims_in(bytes(clique.spec.pod_spec)) for clique in workload.spec.template.cliques)
