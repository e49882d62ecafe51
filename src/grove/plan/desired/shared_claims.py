"""Computes which claims a set shares, on three levels, and which pods refer to them.

    level     AllReplicas              PerReplica                  belongs to
    set       <set>-all-<template>     <set>-<i>-<template>        the set; i is a replica of it
    group     <group>-all-<template>   <group>-<j>-<template>      the group; j is a replica of it
    clique    <clique>-all-<template>  <clique>-<n>-<template>     the clique; n is the index of a pod

Filters decide which pods refer to a claim, never whether it is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from grove.api.error_codes import ErrorCode
from grove.api.naming import labels, names, well_known
from grove.api.naming.annotations import shared_with
from grove.api.types.common import ResourceSharing, SharingScope
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import Clique, Group
from grove.plan.desired.resource_sharing import sharing_lists
from grove.plan.snapshot import ClaimObjects, NamespacedName

Body = dict[str, Any]
API_VERSION, KIND = "resource.k8s.io/v1", "ResourceClaim"


class SharedClaim(Struct, frozen=True, gc=False):
    """A claim that should exist."""

    name: str
    source: ResourceSharing
    labels: labels.Labels
    code: ErrorCode
    """The error code if it cannot be created."""
    owner: Clique | Group | None = None
    """Its owner; None: the set."""


def referred_templates(workload: PodCliqueSet) -> frozenset[NamespacedName]:
    """The ResourceClaimTemplate objects that a set refers to."""
    template = workload.spec.template
    own = {known.name for known in template.resource_claim_templates}
    return frozenset(
        (shared.namespace or workload.metadata.namespace, shared.name)
        for part in sharing_lists(template)
        for shared in part
        if shared.namespace or shared.name not in own
    )


def set_claims(workload: PodCliqueSet) -> Iterator[SharedClaim]:
    """The claims that all replicas of a set share."""
    set_name = workload.metadata.name
    for shared in _of_scope(workload.spec.template.resource_sharing, SharingScope.ALL_REPLICAS):
        name = names.claim_for_all_replicas(set_name, shared.name)
        yield SharedClaim(name, shared, labels.for_claim(set_name, {}), ErrorCode.SYNC_SET_CLAIM)


def replica_claims(workload: PodCliqueSet, index: int) -> Iterator[SharedClaim]:
    """The claims of one replica of a set, apart from those of its groups and cliques."""
    set_name, position = workload.metadata.name, {labels.SET_REPLICA: str(index)}
    for shared in _of_scope(workload.spec.template.resource_sharing, SharingScope.PER_REPLICA):
        name = names.claim_for_replica(set_name, index, shared.name)
        yield SharedClaim(name, shared, labels.for_claim(set_name, position), ErrorCode.SYNC_SET_CLAIM)


def group_claims(workload: PodCliqueSet, group: Group) -> Iterator[SharedClaim]:
    """The claims of a scaling group."""
    shared, position = group.template.resource_sharing, {labels.GROUP: group.name}
    yield from _part_claims(workload, group, shared, position, labels.GROUP_REPLICA, group.indices)


def clique_claims(workload: PodCliqueSet, clique: Clique, indices: Iterable[int]) -> Iterator[SharedClaim]:
    """The claims of a clique, with pods of these indices."""
    shared, position = clique.template.resource_sharing, {labels.CLIQUE: clique.name}
    yield from _part_claims(workload, clique, shared, position, labels.POD_INDEX, indices)


def _part_claims(
    workload: PodCliqueSet,
    part: Clique | Group,
    shared: Sequence[ResourceSharing],
    position: Mapping[str, str],
    index_label: str,
    indices: Iterable[int],
) -> Iterator[SharedClaim]:
    code = ErrorCode.SYNC_GROUP_CLAIM if isinstance(part, Group) else ErrorCode.SYNC_CLIQUE_CLAIM
    set_name = workload.metadata.name
    for each in _of_scope(shared, SharingScope.ALL_REPLICAS):
        name = names.claim_for_all_replicas(part.name, each.name)
        yield SharedClaim(name, each, labels.for_claim(set_name, position), code, part)
    for index in indices:
        for each in _of_scope(shared, SharingScope.PER_REPLICA):
            name = names.claim_for_replica(part.name, index, each.name)
            object_labels = labels.for_claim(set_name, {**position, index_label: str(index)})
            yield SharedClaim(name, each, object_labels, code, part)


def claim_names_of_pod(workload: PodCliqueSet, index: int, clique: Clique, pod_index: int) -> tuple[str, ...]:
    """The claims that a pod refers to, from the widest to the narrowest."""
    own, group = clique.template.name, clique.group
    group_name = group.template.name if group is not None else None
    of_set = [each for each in workload.spec.template.resource_sharing if each.reaches(own, group_name)]
    found = [*_named(workload.metadata.name, of_set, index)]
    if group is not None:
        group_claims = [each for each in group.template.resource_sharing if each.reaches(own)]
        found += _named(group.name, group_claims, clique.group_replica)
    found += _named(clique.name, clique.template.resource_sharing, pod_index)
    return tuple(dict.fromkeys(found))


def _named(owner: str, shared: Sequence[ResourceSharing], index: int) -> Iterator[str]:
    for each in _of_scope(shared, SharingScope.ALL_REPLICAS):
        yield names.claim_for_all_replicas(owner, each.name)
    for each in _of_scope(shared, SharingScope.PER_REPLICA):
        yield names.claim_for_replica(owner, index, each.name)


def _of_scope(shared: Sequence[ResourceSharing], scope: SharingScope) -> Iterator[ResourceSharing]:
    return (each for each in shared if each.scope is scope)


def claim_spec(workload: PodCliqueSet, shared: ResourceSharing, known: ClaimObjects) -> Body | None:
    """The spec of a claim: its template's `spec`, without the template's metadata. None: there is no template
    that the set may use."""
    if not shared.namespace:
        for own in workload.spec.template.resource_claim_templates:
            if own.name == shared.name:
                return _spec_in(bytes(own.template_spec))
    found = known.templates.get((shared.namespace or workload.metadata.namespace, shared.name))
    if found is None or not _may_use(workload, found):
        return None
    return decoded_spec(bytes(found.spec.spec))


def crosses_namespaces(workload: PodCliqueSet, shared: ResourceSharing) -> bool:
    """Whether the template is in another namespace: it needs the consent of that namespace, and without it
    nothing of the template may be disclosed, not even that it exists."""
    return shared.namespace not in ("", workload.metadata.namespace)


def _may_use(workload: PodCliqueSet, template: ResourceClaimTemplateObject) -> bool:
    """Whether a set may use a template. A claim copies the template, so the authors of the set can read all
    of it."""
    own, owner = workload.metadata.namespace, template.metadata.namespace
    return owner == own or shared_with(template.metadata.annotations, own)


@lru_cache(maxsize=256)
def _spec_in(template: bytes) -> Body:
    spec: Body = msgspec.json.decode(template).get("spec") or {}
    return spec


@lru_cache(maxsize=256)
def decoded_spec(spec: bytes) -> Body:
    """The spec of a claim template, decoded once for all that read it: callers do not change it."""
    found: Body = msgspec.json.decode(spec)
    return found


def with_claims(spec: Body, claims: Sequence[str]) -> Body:
    """Returns the pod spec with the claims in every container except our init container."""
    if not claims:
        return spec
    known = spec.get("resourceClaims") or []
    used = {claim.get("name") for claim in known}
    added = [{"name": name, "resourceClaimName": name} for name in claims if name not in used]
    changed = {**spec, "resourceClaims": [*known, *added]}
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            changed[kind] = [
                container
                if container.get("name") == well_known.INIT_CONTAINER
                else _with_container_claims(container, claims)
                for container in spec[kind]
            ]
    return changed


def _with_container_claims(container: Body, claims: Sequence[str]) -> Body:
    resources = container.get("resources") or {}
    known = resources.get("claims") or []
    used = {claim.get("name") for claim in known}
    added = [{"name": name} for name in claims if name not in used]
    return {**container, "resources": {**resources, "claims": [*known, *added]}}
