"""What the operator knows of the cluster: one cache a kind, indexed by replica and by set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import Raw, Struct

from grove.api import labels, names
from grove.api.cliques import PodClique
from grove.api.cluster import (
    Bare,
    HorizontalPodAutoscaler,
    ResourceClaimTemplateObject,
    ResourceQuota,
    Service,
)
from grove.api.config import PODS_PER_SET
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.kind import Kind
from grove.api.meta import ObjectMeta
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.api.topology import ClusterTopology, ClusterTopologyBinding
from grove.fabrics.provider import Domain, FabricDomainProvider, Scope
from grove.fabrics.registry import Providers
from grove.fabrics.resolve import demands
from grove.kube.cache import Cache, HasMetadata
from grove.kube.register import Index
from grove.kube.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.operator.channels import Channels
from grove.operator.keys import SetKey, replica_of, set_of
from grove.operator.sizes import Sizes
from grove.plan.access import Access
from grove.plan.sharing import referred_templates
from grove.schedulers.backend import Foreign, ForeignKind
from grove.topology.constraints import name_of

T = TypeVar("T", bound=HasMetadata)

BY_REPLICA = "replica"
BY_SET = "set"
BY_TOPOLOGY = "topology"
BY_DOMAIN = "domain"
BY_CLAIM = "claim"
BY_OWNER = "owner"
BY_TEMPLATE = "template"
BY_HOLDER = "holder"
OURS = {labels.MANAGED_BY: labels.OPERATOR}


class Definition(Struct, frozen=True):
    """A CRD that somebody reads all of."""

    metadata: ObjectMeta
    spec: Raw


def resource_of(kind: Kind) -> Resource:
    """How the API server serves one of our kinds."""
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)


def served(kind: ForeignKind) -> Resource:
    """The same for a kind of somebody else."""
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)


class Caches:
    """Everything that plans are made from."""

    def __init__(
        self,
        kept: Iterable[ForeignKind] = (),
        mirrored: Iterable[ForeignKind] = (),
        inspected: Iterable[ForeignKind] = (),
        fabrics: Providers | None = None,
        *,
        auto_fabric: bool = False,
        pods_per_set: int = PODS_PER_SET,
    ) -> None:
        self.fabrics = fabrics or Providers()
        self.channels = Channels(self.fabrics, automatic=auto_fabric)
        """What nodes have for fabric domains."""
        self.sets: Cache[PodCliqueSet] = Cache(
            resource_of(PodCliqueSet.KIND),
            PodCliqueSet,
            indexes={
                BY_TOPOLOGY: _topology,
                BY_TEMPLATE: referred_templates,
                BY_DOMAIN: partial(_asked_for, self.fabrics),
            },
        )
        self.groups = _part(resource_of(PodCliqueScalingGroup.KIND), PodCliqueScalingGroup)
        self.cliques = _part(resource_of(PodClique.KIND), PodClique)
        self.sizes = Sizes(self.sets, self.cliques, self.groups, pods_per_set)
        """How many pods sets ask for. It follows before all others, who ask it."""
        self.gangs = _part(resource_of(PodGang.KIND), PodGang)
        self.pods = _part(PODS, Pod, {BY_CLAIM: _claimed})
        self.services = _part(SERVICES, Service)
        self.autoscalers = _part(HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler)
        self.accounts = _of_set(SERVICE_ACCOUNTS)
        self.roles = _of_set(ROLES)
        self.bindings = _of_set(ROLE_BINDINGS)
        self.topologies: Cache[ClusterTopology] = Cache(resource_of(ClusterTopology.KIND), ClusterTopology)
        self.topology_bindings: Cache[ClusterTopologyBinding] = Cache(
            resource_of(ClusterTopologyBinding.KIND), ClusterTopologyBinding
        )
        self.claims: Cache[Bare] = Cache(
            RESOURCE_CLAIMS,
            Bare,
            indexes={BY_REPLICA: _replica, BY_SET: _set, BY_HOLDER: _holder},
            labels=OURS,
        )
        self.claim_templates: Cache[ResourceClaimTemplateObject] = Cache(
            RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplateObject
        )
        self.quotas: Cache[ResourceQuota] = Cache(RESOURCE_QUOTAS, ResourceQuota)
        self.told = {kind: _part(served(kind), Foreign) for kind in kept}
        """What schedulers were told about gangs. Their CRDs may be missing: nobody but their users waits."""
        self.mirrored: dict[ForeignKind, Cache[Foreign]] = {
            kind: Cache(served(kind), Foreign) for kind in mirrored
        }
        """The schedulers' own topologies, whoever manages them."""
        self.definitions = {kind: _definition(kind) for kind in inspected}
        """The CRDs of those kinds of which not every version will do."""
        self.domains: dict[str, Cache[Domain]] = {
            provider.vendor: Cache(
                served(provider.api),
                Domain,
                indexes={BY_OWNER: _owners, BY_CLAIM: partial(_claimed_from, provider)},
            )
            for provider in self.fabrics
        }
        """Fabric domains by vendor, whoever made them."""

    @property
    def parts(self) -> tuple[Cache[Any], ...]:
        """The caches of what belongs to replicas."""
        return (self.groups, self.cliques, self.gangs, self.pods, self.services, self.autoscalers)

    @property
    def grants(self) -> tuple[Cache[Bare], ...]:
        """The caches of what lets init containers look at pods; it belongs to sets."""
        return (self.accounts, self.roles, self.bindings)

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return (*self.needed, *self.optional)

    @property
    def optional(self) -> tuple[Cache[Any], ...]:
        """The caches that only some sets need: what they hold may not be served, or not be ours to see."""
        of_schedulers = (*self.told.values(), *self.mirrored.values())
        return (self.claims, self.claim_templates, self.quotas, *of_schedulers, *self.domains.values())

    @property
    def needed(self) -> tuple[Cache[Any], ...]:
        """The caches without which nothing can be planned."""
        return (self.sets, *self.parts, *self.grants, self.topologies, self.topology_bindings)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All that is written. Secrets are made, and never looked at."""
        return (*(cache.resource for cache in self.all), SECRETS)

    def access(self, key: SetKey) -> Access:
        """What lets the init containers of a set look at its pods."""
        role = names.role(key.name)
        return Access(
            self.accounts.get(key.namespace, names.service_account(key.name)),
            self.roles.get(key.namespace, role),
            self.bindings.get(key.namespace, role),
        )

    def holder(self, claim: Bare) -> HasMetadata | None:
        """What says the replica of a claim: itself, or the clique or group that it belongs to."""
        carried, namespace = claim.metadata.labels, claim.metadata.namespace
        if name := carried.get(labels.CLIQUE):
            return self.cliques.get(namespace, name)
        if name := carried.get(labels.GROUP):
            return self.groups.get(namespace, name)
        return claim

    @property
    def unsynced(self) -> list[str]:
        """What is not known yet, or not served any more."""
        return [cache.resource.label for cache in self.needed if not cache.synced.is_set()]

    def parts_of(self, key: SetKey) -> Iterator[list[Any]]:
        """What is there of a set and belongs to replicas, cache by cache, each read when its turn comes."""
        return (cache.by_index(BY_SET, key) for cache in (*self.parts, self.claims))


def owned_topology(found: Foreign) -> str:
    """The topology that we manage a scheduler's one for; empty if we do not."""
    kinds = {ClusterTopology.KIND.name, ClusterTopologyBinding.KIND.name}
    if found.metadata.labels.get(labels.MANAGED_BY) != labels.OPERATOR:
        return ""
    owners = (owner for owner in found.metadata.owner_references if owner.controller and owner.kind in kinds)
    return next((owner.name for owner in owners), "")


def _definition(kind: ForeignKind) -> Cache[Definition]:
    return Cache(CUSTOM_RESOURCE_DEFINITIONS, Definition, fields=f"metadata.name={kind.crd_name}")


def _part(resource: Resource, as_type: type[T], more: Mapping[str, Index[T]] | None = None) -> Cache[T]:
    indexes: dict[str, Index[T]] = {BY_REPLICA: _replica, BY_SET: _set, **(more or {})}
    return Cache(resource, as_type, indexes=indexes, labels=OURS)


def _of_set(resource: Resource) -> Cache[Bare]:
    return Cache(resource, Bare, labels=OURS)


def _asked_for(fabrics: Providers, workload: PodCliqueSet) -> Iterator[Hashable]:
    """The domains that a set may ask for, by vendor, namespace and name; where the name depends on a count,
    by what it begins with: no index is as large as a count."""
    meta = workload.metadata
    for demand in dict.fromkeys(chain.from_iterable(demands(workload, fabrics).values())):
        name = demand.base if demand.scope is Scope.SHARED else f"{demand.base}-*"
        yield demand.vendor, meta.namespace, name


def _claimed(pod: Pod) -> Iterator[Hashable]:
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_template_name:
            yield pod.metadata.namespace, claim.resource_claim_template_name


def _claimed_from(provider: FabricDomainProvider, domain: Domain) -> Iterator[Hashable]:
    yield domain.metadata.namespace, provider.template_name(domain)


def _owners(found: HasMetadata) -> Iterator[Hashable]:
    return (owner.uid for owner in found.metadata.owner_references)


def _holder(found: HasMetadata) -> Iterator[Hashable]:
    """The clique or group whose labels a claim carries: they do not say the replica."""
    for label in (labels.CLIQUE, labels.GROUP):
        if name := found.metadata.labels.get(label):
            yield found.metadata.namespace, label, name
            return


def _topology(workload: PodCliqueSet) -> Iterator[Hashable]:
    if name := name_of(workload.spec.template):
        yield name


def _replica(found: HasMetadata) -> Iterator[Hashable]:
    if key := replica_of(found.metadata):
        yield key


def _set(found: HasMetadata) -> Iterator[Hashable]:
    if key := set_of(found.metadata):
        yield key
