"""All informer caches of the operator: one for each kind, indexed by replica and by set.

Observers read them, event mappings subscribe to them, and the executor stores the replies of writes in them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import Raw, Struct

from grove.api.configuration.default_scheduler import SchedulerLease
from grove.api.configuration.types import PODS_PER_SET
from grove.api.meta import ObjectMeta
from grove.api.naming import labels, names
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kubernetes_objects import (
    HorizontalPodAutoscaler,
    PartialObjectMetadata,
    PriorityClass,
    ResourceClaimTemplateObject,
    ResourceQuota,
    Service,
)
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.provider import Domain, FabricDomainProvider, Scope
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import domain_requirements
from grove.kube.cache.cache import Cache, HasMetadata
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.index import IndexFunction
from grove.kube.client.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PRIORITY_CLASSES,
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
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.fabric_nodes import FabricNodes
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.resources import external_resource, resource_of
from grove.operator.caches.scheduler_process import SchedulerProcess
from grove.operator.caches.set_sizes import SetSizes
from grove.operator.caches.volumes import Volumes
from grove.operator.keys import SetKey, replica_of, set_of
from grove.plan.desired.pod_claims import claims_of_set
from grove.plan.desired.shared_claims import referred_templates
from grove.plan.snapshot import RbacObjects
from grove.schedulers.backend import ForeignKind, SchedulerObject
from grove.topology.fallbacks import topology_names

T = TypeVar("T", bound=HasMetadata)

BY_REPLICA = "replica"
BY_SET = "set"
BY_NAMESPACE = "namespace"
BY_TOPOLOGY = "topology"
BY_DOMAIN = "domain"
BY_CLAIM = "claim"
BY_OWNER = "owner"
BY_GRAPH = "graph"
BY_TEMPLATE = "template"
BY_PRIORITY_CLASS = "priorityClass"
BY_OWNER_LABEL = "holder"
BY_NODE = "node"
BY_POD_CLAIM = "pod claim"


class InspectedCRD(Struct, frozen=True):
    """A CRD whose whole spec is kept, for the check of its version."""

    metadata: ObjectMeta
    spec: Raw


class Caches:
    """All caches, from which snapshots for plans are read."""

    def __init__(
        self,
        scheduler_kinds: Iterable[ForeignKind] = (),
        scheduler_topologies: Iterable[ForeignKind] = (),
        versioned_kinds: Iterable[ForeignKind] = (),
        fabrics: Providers | None = None,
        *,
        auto_fabric: bool = False,
        pods_per_set: int = PODS_PER_SET,
        placement: bool = False,
        topology_aware: bool = False,
        reads_topologies: bool = True,
        start_order: bool = True,
        scheduler_lease: SchedulerLease | None = None,
    ) -> None:
        self._reads_topologies = reads_topologies
        self.start_order = start_order
        """Whether sets may have a start order, and the operator may write RBAC objects for it."""
        self.fabrics = fabrics or Providers()
        automatic = self.fabrics.auto if auto_fabric else None
        self.nodes = Nodes(automatic, placement=placement)
        """The nodes of the cluster, of which only what is required is kept."""
        self.cluster_pods = ClusterPods() if placement else None
        """All pods of the cluster, watched only for the placement of gangs."""
        self.devices = Devices() if placement else None
        """Devices in ResourceSlices, watched only if a gang to place claims some."""
        self.volumes = Volumes() if placement else None
        """Volumes and their claims, watched only if a pod of a gang to place has some."""
        self.scheduler_process = SchedulerProcess(scheduler_lease or SchedulerLease())
        """The scheduler, watched only for the placement of gangs."""
        self.reads_nodes = automatic is not None or placement or topology_aware
        """Whether the operator may read nodes, and pods are indexed by their node."""
        self.fabric_nodes = FabricNodes(self.fabrics, self.nodes, automatic, reads_nodes=self.reads_nodes)
        """The channels and accelerators of nodes."""
        self.sets: Cache[PodCliqueSet] = Cache(
            resource_of(PodCliqueSet.KIND),
            PodCliqueSet,
            indexes={
                BY_TOPOLOGY: _topologies,
                BY_TEMPLATE: referred_templates,
                BY_DOMAIN: partial(_requested_domains, self.fabrics),
                BY_GRAPH: _graph,
                BY_PRIORITY_CLASS: _priority_class,
                **({BY_POD_CLAIM: _pod_claims} if placement else {}),
            },
        )
        self.groups = _replica_cache(resource_of(PodCliqueScalingGroup.KIND), PodCliqueScalingGroup)
        self.cliques = _replica_cache(resource_of(PodClique.KIND), PodClique)
        self.sizes = SetSizes(self.sets, self.cliques, self.groups, pods_per_set)
        """How many pods sets request. It subscribes before all other handlers, which read it."""
        self.gangs = _replica_cache(resource_of(PodGang.KIND), PodGang)
        by_node: dict[str, IndexFunction[Pod]] = {BY_NODE: _node} if self.reads_nodes else {}
        self.pods = _replica_cache(PODS, Pod, {BY_CLAIM: _claim_template_names, **by_node})
        self.services = _replica_cache(SERVICES, Service)
        self.autoscalers = _replica_cache(HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler)
        self.service_accounts = _set_cache(SERVICE_ACCOUNTS)
        self.roles = _set_cache(ROLES)
        self.role_bindings = _set_cache(ROLE_BINDINGS)
        self.topologies: Cache[ClusterTopology] = Cache(resource_of(ClusterTopology.KIND), ClusterTopology)
        self.topology_bindings: Cache[ClusterTopologyBinding] = Cache(
            resource_of(ClusterTopologyBinding.KIND), ClusterTopologyBinding
        )
        self.claims: Cache[PartialObjectMetadata] = Cache(
            RESOURCE_CLAIMS,
            PartialObjectMetadata,
            indexes={BY_REPLICA: _replica, BY_SET: _set, BY_OWNER_LABEL: _owner_label},
            labels=labels.MANAGED_BY_OPERATOR,
        )
        self.claim_templates: Cache[ResourceClaimTemplateObject] = Cache(
            RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplateObject
        )
        self.quotas: Cache[ResourceQuota] = Cache(
            RESOURCE_QUOTAS, ResourceQuota, indexes={BY_NAMESPACE: _namespace}
        )
        self.priority_classes: Cache[PriorityClass] = Cache(PRIORITY_CLASSES, PriorityClass)
        self.scheduler_objects = {
            kind: _replica_cache(external_resource(kind), SchedulerObject) for kind in scheduler_kinds
        }
        """The objects of schedulers for gangs. If a CRD is missing, only sets of that scheduler wait."""
        self.scheduler_topologies: dict[ForeignKind, Cache[SchedulerObject]] = {
            kind: Cache(external_resource(kind), SchedulerObject) for kind in scheduler_topologies
        }
        """The topology objects of schedulers, also those that the operator does not manage."""
        self.inspected_crds = {kind: _crd_cache(kind) for kind in versioned_kinds}
        """The CRDs of kinds of which only some versions are supported."""
        self.domains: dict[str, Cache[Domain]] = {
            provider.vendor: Cache(
                external_resource(provider.api),
                Domain,
                indexes={BY_OWNER: _owner_uids, BY_CLAIM: partial(_domain_claim_template, provider)},
            )
            for provider in self.fabrics
        }
        """Fabric domains by vendor, also those that the operator did not create."""
        self.crd_watch = CrdWatch()
        """All CRDs; reflectors of kinds that are not served wait for them."""

    @property
    def replica_objects(self) -> tuple[Cache[Any], ...]:
        """The caches of objects that belong to replicas."""
        return (self.groups, self.cliques, self.gangs, self.pods, self.services, self.autoscalers)

    @property
    def rbac_objects(self) -> tuple[Cache[PartialObjectMetadata], ...]:
        """The caches of the RBAC objects with which init containers read pods; they belong to sets. Without
        start orders there are none."""
        return (self.service_accounts, self.roles, self.role_bindings) if self.start_order else ()

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return (*self.needed, *self.optional)

    @property
    def optional(self) -> tuple[Cache[Any], ...]:
        """The caches that only some sets need: their kinds may not be served, or not be readable by RBAC."""
        of_schedulers = (*self.scheduler_objects.values(), *self.scheduler_topologies.values())
        return (
            self.priority_classes,
            self.claims,
            self.claim_templates,
            self.quotas,
            *of_schedulers,
            *self.domains.values(),
        )

    @property
    def needed(self) -> tuple[Cache[Any], ...]:
        """The caches without which nothing can be planned."""
        return (self.sets, *self.replica_objects, *self.rbac_objects, *self.read_topologies)

    @property
    def read_topologies(self) -> tuple[Cache[Any], ...]:
        """The caches of topologies, where a feature reads them."""
        return (self.topologies, self.topology_bindings) if self._reads_topologies else ()

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All resources that are written. Secrets are created and never read."""
        return (*(cache.resource for cache in self.all), SECRETS)

    def outdated(self, resource: Resource) -> bool:
        """Whether the CRD of a kind exists and does not serve the version of the operator."""
        definition = self.crd_watch.definitions.get("", resource.label)
        return definition is not None and not definition.declares(resource.version)

    def priority_class(self, name: str) -> PriorityClass | None:
        """A PriorityClass; without a name, the default class."""
        if name:
            return self.priority_classes.get("", name)
        return next((each for each in self.priority_classes if each.global_default), None)

    def access(self, key: SetKey) -> RbacObjects:
        """The RBAC objects with which the init containers of a set read its pods."""
        role = names.role(key.name)
        return RbacObjects(
            self.service_accounts.get(key.namespace, names.service_account(key.name)),
            self.roles.get(key.namespace, role),
            self.role_bindings.get(key.namespace, role),
        )

    def claim_owner(self, claim: PartialObjectMetadata) -> HasMetadata | None:
        """The object whose labels name the replica of a claim: its clique or group, else the claim itself."""
        claim_labels, namespace = claim.metadata.labels, claim.metadata.namespace
        if name := claim_labels.get(labels.CLIQUE):
            return self.cliques.get(namespace, name)
        if name := claim_labels.get(labels.GROUP):
            return self.groups.get(namespace, name)
        return claim

    @property
    def unsynced(self) -> list[str]:
        """The needed kinds whose caches are not synced yet, or not served any more."""
        return [cache.resource.label for cache in self.needed if not cache.synced.is_set()]

    def objects_of_set(self, key: SetKey) -> Iterator[list[Any]]:
        """The objects of a set that belong to replicas, cache by cache; each cache is read lazily."""
        return (cache.by_index(BY_SET, key) for cache in (*self.replica_objects, self.claims))


def _crd_cache(kind: ForeignKind) -> Cache[InspectedCRD]:
    return Cache(CUSTOM_RESOURCE_DEFINITIONS, InspectedCRD, fields=f"metadata.name={kind.crd_name}")


def _replica_cache(
    resource: Resource, as_type: type[T], more: Mapping[str, IndexFunction[T]] | None = None
) -> Cache[T]:
    indexes: dict[str, IndexFunction[T]] = {BY_REPLICA: _replica, BY_SET: _set, **(more or {})}
    return Cache(resource, as_type, indexes=indexes, labels=labels.MANAGED_BY_OPERATOR)


def _set_cache(resource: Resource) -> Cache[PartialObjectMetadata]:
    return Cache(resource, PartialObjectMetadata, labels=labels.MANAGED_BY_OPERATOR)


def _requested_domains(fabrics: Providers, workload: PodCliqueSet) -> Iterator[Hashable]:
    """The domains that a set may require, by vendor, namespace and name. Where the name ends with an index,
    by its prefix: the index does not grow with the replicas of a set."""
    meta = workload.metadata
    for requirement in dict.fromkeys(chain.from_iterable(domain_requirements(workload, fabrics).values())):
        name = requirement.base if requirement.scope is Scope.SHARED else f"{requirement.base}-*"
        yield requirement.vendor, meta.namespace, name


def _claim_template_names(pod: Pod) -> Iterator[Hashable]:
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_template_name:
            yield pod.metadata.namespace, claim.resource_claim_template_name


def _pod_claims(workload: PodCliqueSet) -> Iterator[Hashable]:
    """What the templates of pods refer to, by kind, namespace and name."""
    namespace = workload.metadata.namespace
    for claims in claims_of_set(workload):
        yield from ((RESOURCE_CLAIM_TEMPLATES.kind, namespace, name) for name in claims.templates)
        yield from ((RESOURCE_CLAIMS.kind, namespace, name) for name in claims.named)
        yield from ((PERSISTENT_VOLUME_CLAIMS.kind, namespace, name) for name in claims.volumes)


def _node(pod: Pod) -> Iterator[Hashable]:
    if pod.spec.node_name:
        yield pod.spec.node_name


def _domain_claim_template(provider: FabricDomainProvider, domain: Domain) -> Iterator[Hashable]:
    yield domain.metadata.namespace, provider.template_name(domain)


def _owner_uids(found: HasMetadata) -> Iterator[Hashable]:
    return (owner.uid for owner in found.metadata.owner_references)


def _owner_label(found: HasMetadata) -> Iterator[Hashable]:
    """The clique or group in the labels of a claim, which do not name the replica."""
    for label in (labels.CLIQUE, labels.GROUP):
        if name := found.metadata.labels.get(label):
            yield found.metadata.namespace, label, name
            return


def _topologies(workload: PodCliqueSet) -> Iterator[Hashable]:
    return iter(topology_names(workload.spec.template))


def _priority_class(workload: PodCliqueSet) -> Iterator[Hashable]:
    if name := workload.spec.template.priority_class_name:
        yield name


def _namespace(found: HasMetadata) -> Iterator[Hashable]:
    yield found.metadata.namespace


def _graph(workload: PodCliqueSet) -> Iterator[Hashable]:
    if key := owning_graph(workload.metadata):
        yield key


def _replica(found: HasMetadata) -> Iterator[Hashable]:
    if key := replica_of(found.metadata):
        yield key


def _set(found: HasMetadata) -> Iterator[Hashable]:
    if key := set_of(found.metadata):
        yield key
