"""Which claims a set shares, on three levels, and which pods refer to them.

    level     AllReplicas              PerReplica                  belongs to
    set       <set>-all-<template>     <set>-<i>-<template>        the set; i is a replica of it
    group     <group>-all-<template>   <group>-<j>-<template>      the group; j is a replica of it
    clique    <clique>-all-<template>  <clique>-<n>-<template>     the clique; n is the index of a pod

Filters decide who refers to a claim, never whether it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from grove.api import labels, marks, names
from grove.api.annotations import shared_with
from grove.api.cluster import Bare, ResourceClaimTemplateObject
from grove.api.errors import ErrorCode
from grove.api.parts import ResourceSharing, SharingScope
from grove.api.sets import PodCliqueSet, PodCliqueSetTemplate
from grove.plan.expand import Clique, Group

Body = dict[str, Any]
Place = tuple[str, str]
"""Namespace and name."""

API_VERSION, KIND = "resource.k8s.io/v1", "ResourceClaim"


class Shared(Struct, frozen=True):
    """What is there of claims that a set shares, by name, and of the template objects that it refers to."""

    claims: Mapping[str, Bare] = {}
    templates: Mapping[Place, ResourceClaimTemplateObject] = {}
    undecodable: Mapping[Place, str] = {}
    """Template objects that exist and cannot be decoded, with the reason."""
    visible: bool = True
    """Whether there is a way to see them; if not, nobody knows what is there."""
    leaving: frozenset[str] = frozenset()
    """Names that claims have which are on their way out."""


class Claim(Struct, frozen=True, gc=False):
    """A claim that there should be."""

    name: str
    source: ResourceSharing
    labels: labels.Labels
    code: ErrorCode
    """What it is called if it cannot be made."""
    owner: Clique | Group | None = None
    """Whom it belongs to; None: the set."""


def shares(template: PodCliqueSetTemplate) -> bool:
    """Whether any part of a set shares claims."""
    return any(_lists(template))


def referred_templates(workload: PodCliqueSet) -> frozenset[Place]:
    """The ResourceClaimTemplate objects that a set refers to."""
    template = workload.spec.template
    own = {known.name for known in template.resource_claim_templates}
    return frozenset(
        (shared.namespace or workload.metadata.namespace, shared.name)
        for part in _lists(template)
        for shared in part
        if shared.namespace or shared.name not in own
    )


def of_whole_set(workload: PodCliqueSet) -> Iterator[Claim]:
    """The claims that all replicas of a set share."""
    set_name = workload.metadata.name
    for shared in _of_scope(workload.spec.template.resource_sharing, SharingScope.ALL_REPLICAS):
        name = names.claim_for_all(set_name, shared.name)
        yield Claim(name, shared, labels.for_claim(set_name, {}), ErrorCode.SYNC_SET_CLAIM)


def of_replica(workload: PodCliqueSet, index: int) -> Iterator[Claim]:
    """The claims of one replica of a set, apart from those of its groups and cliques."""
    set_name, place = workload.metadata.name, {labels.SET_REPLICA: str(index)}
    for shared in _of_scope(workload.spec.template.resource_sharing, SharingScope.PER_REPLICA):
        name = names.claim_for_one(set_name, index, shared.name)
        yield Claim(name, shared, labels.for_claim(set_name, place), ErrorCode.SYNC_SET_CLAIM)


def of_group(workload: PodCliqueSet, group: Group) -> Iterator[Claim]:
    """The claims of a scaling group."""
    shared, place = group.template.resource_sharing, {labels.GROUP: group.name}
    yield from _of_part(workload, group, shared, place, labels.GROUP_REPLICA, group.indices)


def of_clique(workload: PodCliqueSet, clique: Clique, indices: Iterable[int]) -> Iterator[Claim]:
    """The claims of a clique, with pods of these indices."""
    shared, place = clique.template.resource_sharing, {labels.CLIQUE: clique.name}
    yield from _of_part(workload, clique, shared, place, labels.POD_INDEX, indices)


def _of_part(
    workload: PodCliqueSet,
    part: Clique | Group,
    shared: Sequence[ResourceSharing],
    place: Mapping[str, str],
    index_label: str,
    indices: Iterable[int],
) -> Iterator[Claim]:
    code = ErrorCode.SYNC_GROUP_CLAIM if isinstance(part, Group) else ErrorCode.SYNC_CLIQUE_CLAIM
    set_name = workload.metadata.name
    for each in _of_scope(shared, SharingScope.ALL_REPLICAS):
        name = names.claim_for_all(part.name, each.name)
        yield Claim(name, each, labels.for_claim(set_name, place), code, part)
    for index in indices:
        for each in _of_scope(shared, SharingScope.PER_REPLICA):
            name = names.claim_for_one(part.name, index, each.name)
            carried = labels.for_claim(set_name, {**place, index_label: str(index)})
            yield Claim(name, each, carried, code, part)


def referred(workload: PodCliqueSet, index: int, clique: Clique, pod_index: int) -> tuple[str, ...]:
    """The claims that a pod refers to, from the widest to the narrowest."""
    own, group = clique.template.name, clique.group
    around = group.template.name if group is not None else None
    of_set = [each for each in workload.spec.template.resource_sharing if each.reaches(own, around)]
    found = [*_named(workload.metadata.name, of_set, index)]
    if group is not None:
        of_group = [each for each in group.template.resource_sharing if each.reaches(own)]
        found += _named(group.name, of_group, clique.group_replica)
    found += _named(clique.name, clique.template.resource_sharing, pod_index)
    return tuple(dict.fromkeys(found))


def _named(owner: str, shared: Sequence[ResourceSharing], index: int) -> Iterator[str]:
    for each in _of_scope(shared, SharingScope.ALL_REPLICAS):
        yield names.claim_for_all(owner, each.name)
    for each in _of_scope(shared, SharingScope.PER_REPLICA):
        yield names.claim_for_one(owner, index, each.name)


def _of_scope(shared: Sequence[ResourceSharing], scope: SharingScope) -> Iterator[ResourceSharing]:
    return (each for each in shared if each.scope is scope)


def _lists(template: PodCliqueSetTemplate) -> Iterator[Sequence[ResourceSharing]]:
    yield template.resource_sharing
    yield from (group.resource_sharing for group in template.pod_clique_scaling_groups)
    yield from (clique.resource_sharing for clique in template.cliques)


def claim_spec(workload: PodCliqueSet, shared: ResourceSharing, known: Shared) -> Body | None:
    """What a claim asks for: its template's `spec`, and nothing of the template's metadata. None: there is no
    template that the set may use."""
    if not shared.namespace:
        for own in workload.spec.template.resource_claim_templates:
            if own.name == shared.name:
                return _spec_in(bytes(own.template_spec))
    found = known.templates.get((shared.namespace or workload.metadata.namespace, shared.name))
    if found is None or not _may_use(workload, found):
        return None
    return _decoded(bytes(found.spec.spec))


def crosses_namespaces(workload: PodCliqueSet, shared: ResourceSharing) -> bool:
    """Whether the template is one of another namespace: it needs the consent of that namespace, and without
    it nothing of the template may be disclosed, not even that it exists."""
    return shared.namespace not in ("", workload.metadata.namespace)


def _may_use(workload: PodCliqueSet, template: ResourceClaimTemplateObject) -> bool:
    """A claim copies the template, so that the authors of the set can read all of it."""
    own, owner = workload.metadata.namespace, template.metadata.namespace
    return owner == own or shared_with(template.metadata.annotations, own)


@lru_cache(maxsize=256)
def _spec_in(template: bytes) -> Body:
    spec: Body = msgspec.json.decode(template).get("spec") or {}
    return spec


@lru_cache(maxsize=256)
def _decoded(spec: bytes) -> Body:
    found: Body = msgspec.json.decode(spec)
    return found


def with_claims(spec: Body, claims: Sequence[str]) -> Body:
    """A pod spec that refers to the claims, in every container but that which waits for other pods."""
    if not claims:
        return spec
    known = spec.get("resourceClaims") or []
    taken = {claim.get("name") for claim in known}
    added = [{"name": name, "resourceClaimName": name} for name in claims if name not in taken]
    changed = {**spec, "resourceClaims": [*known, *added]}
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            changed[kind] = [
                container if container.get("name") == marks.INIT_CONTAINER else _using(container, claims)
                for container in spec[kind]
            ]
    return changed


def _using(container: Body, claims: Sequence[str]) -> Body:
    resources = container.get("resources") or {}
    known = resources.get("claims") or []
    taken = {claim.get("name") for claim in known}
    added = [{"name": name} for name in claims if name not in taken]
    return {**container, "resources": {**resources, "claims": [*known, *added]}}
