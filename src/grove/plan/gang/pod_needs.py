"""What the pods of a clique need besides the resources of nodes, from their claims and what those refer to.

A claim that several pods share is allocated once, for the first of them that is scheduled. It is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from grove.api.types.common import ResourceSharing, SharingScope
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import Clique
from grove.plan.desired.pod_claims import PodClaims, claims_in
from grove.plan.desired.podspec import clique_pod_spec
from grove.plan.desired.shared_claims import claim_spec
from grove.plan.placement.needs import ClaimSources, KnownVolume, PodNeeds
from grove.plan.snapshot import Snapshot
from grove.topology.placement.needs.devices import DeviceCatalog, claimed, requested_classes
from grove.topology.placement.needs.volumes import Terms, both

Body = dict[str, Any]


class _Claims(Struct, frozen=True):
    """All claims of a pod: by its spec, of its own by `resourceSharing`, and those shared with other pods."""

    written: PodClaims
    own: tuple[ResourceSharing, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def on_devices(self) -> bool:
        return bool(self.written.devices or self.own or self.shared)


def pod_needs(snapshot: Snapshot, clique: Clique, sources: ClaimSources) -> PodNeeds:
    """The needs of each pod of a clique."""
    claims = _claims(snapshot.workload, clique)
    written = claims.written
    if not _is_listed(claims, sources):
        return PodNeeds(listed=False)
    if missing := next(_missing(written, sources), ""):
        return PodNeeds(waits_for=missing)
    catalog = sources.devices or DeviceCatalog()
    found = claimed(_specs(snapshot, claims, sources), catalog)
    nodes, unbound = _volumes(written, sources)
    uncounted = (*found.uncounted, *(f"claim {name}: pods share it" for name in claims.shared))
    classes = (*found.classes, *requested_classes(written.requested, catalog.extended))
    first = next(_bound_first(written, sources), "")
    return PodNeeds(
        tuple(sorted(found.amounts.items())), nodes, classes, uncounted, unbound, unbound_first=first
    )


def _is_listed(claims: _Claims, sources: ClaimSources) -> bool:
    """Whether everything is listed that the claims of a pod refer to."""
    if sources.devices is None and (claims.on_devices or sources.requested):
        return False
    if claims.on_devices and sources.templates is None:
        return False
    return sources.volumes is not None or not claims.written.volumes


def _claims(workload: PodCliqueSet, clique: Clique) -> _Claims:
    spec = bytes(clique.template.spec.pod_spec)
    if clique.fabric_domains:
        spec = msgspec.json.encode(clique_pod_spec(workload, clique))
    written, group = claims_in(spec), clique.group
    name, group_name = clique.template.name, group.template.name if group is not None else None
    of_pods = [each for each in clique.template.resource_sharing if each.scope is SharingScope.PER_REPLICA]
    shared = [each for each in clique.template.resource_sharing if each.scope is SharingScope.ALL_REPLICAS]
    if group is not None:
        shared += [each for each in group.template.resource_sharing if each.reaches(name)]
    of_set = workload.spec.template.resource_sharing
    shared += [each for each in of_set if each.reaches(name, group_name)]
    named = (each.resource_claim_name for each in written.devices)
    return _Claims(written, tuple(of_pods), (*filter(None, named), *(each.name for each in shared)))


def _missing(written: PodClaims, sources: ClaimSources) -> Iterator[str]:
    """What the pods refer to, and does not exist."""
    for name in sorted(written.templates - (sources.templates or {}).keys()):
        yield f"ResourceClaimTemplate {name}"
    if sources.claims is not None:
        for name in sorted(written.named - sources.claims):
            yield f"ResourceClaim {name}"
    for name in sorted(set(written.volumes) - (sources.volumes or {}).keys()):
        yield f"PersistentVolumeClaim {name}"


def _bound_first(written: PodClaims, sources: ClaimSources) -> Iterator[str]:
    """The claims whose volumes must be bound before the pods can be scheduled."""
    return (name for name in sorted(set(written.volumes)) if (sources.volumes or {})[name].bound_first)


def _specs(snapshot: Snapshot, claims: _Claims, sources: ClaimSources) -> Iterator[Body]:
    """The specs of the claims that each pod has for itself."""
    for each in claims.written.devices:
        if each.resource_claim_template_name:
            yield dict((sources.templates or {})[each.resource_claim_template_name])
    for own in claims.own:
        if (spec := claim_spec(snapshot.workload, own, snapshot.shared)) is not None:
            yield spec


def _volumes(written: PodClaims, sources: ClaimSources) -> tuple[Terms, tuple[str, ...]]:
    """The nodes that can use all volumes, and the volumes that are not bound."""
    known = [(name, (sources.volumes or {})[name]) for name in written.volumes]
    known += [
        (name, KnownVolume(bound=False, nodes=sources.storage_classes.get(storage_class)))
        for name, storage_class in written.ephemeral
    ]
    return _all_nodes(known), tuple(f"volume {name}" for name, each in known if not each.bound)


def _all_nodes(known: Iterable[tuple[str, KnownVolume]]) -> Terms:
    nodes: Terms = None
    for each in dict.fromkeys(volume.nodes for _, volume in known):
        nodes = both(nodes, each)
    return nodes
