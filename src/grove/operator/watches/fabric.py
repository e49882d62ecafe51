"""The watches of fabric domains, and of the sets and replicas that a change of a domain concerns.

Sets without domains enqueue nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from grove import timing
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, Scope
from grove.fabrics.requirements import domain_requirements
from grove.kube.cache.crd_watch import CustomResourceDefinition
from grove.operator.caches.predicates import Predicate, spec_or_metadata_changed
from grove.operator.caches.registry import BY_NODE, Caches
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey, replica_of
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.enqueue_slices import FanOut, all_replicas
from grove.operator.watches.table import Watch
from grove.plan.fabric.state import is_managed
from grove.plan.members.pod_state import unschedulable_since


def domain_watches(caches: Caches, fabric_lookup: FabricLookup) -> tuple[Watch, ...]:
    """The watches of fabric domains; none without a vendor."""
    if not len(caches.fabrics):
        return ()
    find, changed = _DomainKeys(caches, fabric_lookup), spec_or_metadata_changed
    return (
        Watch(caches.sets, find.of_set, changed, replay=True),
        Watch(caches.groups, find.of_group, group_scaled),
        Watch(caches.pods, find.of_pod, pod_deleted_or_node_changed),
        Watch(caches.pods, find.sharing_sets, pod_bound_or_deleted),
        Watch(caches.claim_templates, find.of_template),
        *chain.from_iterable(
            (
                Watch(cache, partial(domain_itself, vendor), domain_changed(caches, vendor), replay=True),
                Watch(cache, partial(find.sets_of_domain, vendor), replay=True),
                Watch(cache, partial(find.replicas_of_domain, vendor), changed, replay=True),
                Watch(cache.on_synced_or_absent, find.sets_with_domains),
                Watch(
                    caches.crd_watch.definitions,
                    partial(find.sets_of_definition, vendor),
                    definition_outdated(caches, vendor),
                ),
            )
            for vendor, cache in caches.domains.items()
        ),
        Watch(caches.fabric_nodes.subscribe, find.sets_with_domains),
        *(
            (Watch(caches.nodes.subscribe_labels, find.on_node, delay=timing.BATCH_DELAY),)
            if caches.reads_nodes
            else ()
        ),
    )


def group_scaled(old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> bool:
    """The group is created, deleted or scaled."""
    return old is None or new is None or old.spec.replicas != new.spec.replicas


def pod_deleted_or_node_changed(old: Pod | None, new: Pod | None) -> bool:
    """A pod with claims is deleted, gets its node, or becomes unschedulable or schedulable."""
    if old is None or not (new or old).spec.resource_claims:
        return False
    return (
        new is None
        or old.spec.node_name != new.spec.node_name
        or unschedulable_since(old) != unschedulable_since(new)
    )


def pod_bound_or_deleted(old: Pod | None, new: Pod | None) -> bool:
    """A pod with claims gets its node, or is deleted from it."""
    if old is None or not (new or old).spec.resource_claims:
        return False
    return old.spec.node_name != (new.spec.node_name if new is not None else "")


def domain_changed(caches: Caches, vendor: str) -> Predicate:
    """The spec, the metadata or the partitions of a domain changed."""
    provider = caches.fabrics.of(vendor)

    def partitions(domain: Domain) -> tuple[tuple[str, ...], ...]:
        view = provider.observe(domain)
        return view.partitions, view.without_partition

    def changed(old: Domain | None, new: Domain | None) -> bool:
        return (
            old is None
            or new is None
            or spec_or_metadata_changed(old, new)
            or partitions(old) != partitions(new)
        )

    return changed


def definition_outdated(caches: Caches, vendor: str) -> Predicate:
    """The CRD of the vendor's domains is created, changed or deleted while it does not serve our version."""
    api = caches.fabrics.of(vendor).api

    def changed(old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> bool:
        known = [each for each in (old, new) if each is not None]
        return known[0].metadata.name == api.crd_name and any(
            not each.declares(api.version) for each in known
        )

    return changed


def domain_itself(vendor: str, old: Domain | None, new: Domain | None) -> tuple[DomainKey]:
    """The domain that changed."""
    found = new or old
    assert found is not None
    return (DomainKey(vendor, found.metadata.namespace, found.metadata.name),)


def consuming_replicas(
    caches: Caches, fabric_lookup: FabricLookup, key: DomainKey
) -> Iterator[ReplicaKey | FanOut]:
    """The replicas whose pods join a domain."""
    for consumer in fabric_lookup.consumers(key):
        workload, membership = consumer.workload, consumer.membership
        if membership.requirement.scope is Scope.SHARED:
            yield all_replicas(caches, SetKey(key.namespace, workload.metadata.name), workload)
        else:
            yield ReplicaKey(key.namespace, workload.metadata.name, membership.replicas[0])


class _DomainKeys:
    """Looks up the domains that depend on an object, and the sets and replicas that depend on a domain."""

    def __init__(self, caches: Caches, fabric_lookup: FabricLookup) -> None:
        self._caches, self._fabric_lookup = caches, fabric_lookup

    def of_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> Iterator[FanOut]:
        """The domains that a set requires, required before, or owns."""
        known = [workload for workload in (old, new) if workload is not None]
        meta = known[-1].metadata

        def domains() -> Iterator[Key]:
            for workload in known:
                yield from self._fabric_lookup.keys_of(workload)
            yield from self._fabric_lookup.owned_keys(meta.uid)

        yield FanOut(("domains", meta.namespace, meta.name), domains)

    def of_group(
        self, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None
    ) -> Iterator[DomainKey]:
        """The domains of the replica of a group, if they depend on the replicas of the group; if it is scaled
        in, all domains that the set owns."""
        found = new or old
        assert found is not None
        name = found.metadata.labels.get(labels.PART_OF, "")
        workload = self._caches.sets.get(found.metadata.namespace, name)
        replica = replica_of(found.metadata)
        if workload is None or replica is None or not self._fabric_lookup.depends_on_group_replicas(workload):
            return
        yield from self._fabric_lookup.keys_in(workload, replica.replica)
        if old is not None and (new is None or new.spec.replicas < old.spec.replicas):
            yield from self._fabric_lookup.owned_keys(workload.metadata.uid)

    def on_node(self, node: str) -> Iterator[DomainKey]:
        """The domains of the pods on a node whose labels changed: they say which domain holds the node, and
        in which partition it is."""
        for pod in self._caches.pods.by_index(BY_NODE, node):
            yield from self.of_pod(pod, pod)

    def of_pod(self, old: Pod, new: Pod | None) -> Iterator[DomainKey]:
        """The domains of a pod. If it is unschedulable, their plans find which other domains occupy the
        nodes."""
        found = new or old
        for claim in found.spec.resource_claims:
            if template := claim.resource_claim_template_name:
                yield from self._fabric_lookup.domains_of_template(found.metadata.namespace, template)

    def sharing_sets(self, old: Pod, new: Pod | None) -> Iterator[SetKey]:
        """The other sets that share the domains of a pod: their statuses say which nodes of its pods are not
        in a domain yet. The set of the pod follows from the report of its replica."""
        own = old.metadata.labels.get(labels.PART_OF, "")
        for key in self.of_pod(old, new):
            domain = self._caches.domains[key.vendor].get(key.namespace, key.name)
            if domain is None or (is_managed(domain) and len(domain.metadata.owner_references) < 2):
                continue
            yield from (each for each in self._consuming_sets(key) if each.name != own)

    def of_template(
        self, old: ResourceClaimTemplateObject | None, new: ResourceClaimTemplateObject | None
    ) -> Iterator[Key | FanOut]:
        """A domain and its consumers, if its claim template appears or disappears, or if a template that the
        domain does not own has or had the name."""
        known = [each.metadata for each in (old, new) if each is not None]
        for key in self._fabric_lookup.domains_of_template(known[-1].namespace, known[-1].name):
            provider = self._caches.fabrics.of(key.vendor)
            domain = self._caches.domains[key.vendor].get(key.namespace, key.name)
            owned = domain is not None and all(provider.owns_template(domain, meta) for meta in known)
            if domain is not None and not (owned and len(known) == 2):
                yield key
                yield from self._consuming_sets(key)
                yield from self._consuming_replicas(key)

    def sets_of_domain(self, vendor: str, old: Domain | None, new: Domain | None) -> Iterator[SetKey]:
        """The owners and consumers of a domain, whose statuses report it."""
        (key,) = domain_itself(vendor, old, new)
        for found in (old, new):
            for owner in found.metadata.owner_references if found is not None else ():
                if owner.kind == PodCliqueSet.KIND.name:
                    yield SetKey(key.namespace, owner.name)
        yield from self._consuming_sets(key)

    def replicas_of_domain(
        self, vendor: str, old: Domain | None, new: Domain | None
    ) -> Iterator[ReplicaKey | FanOut]:
        """The replicas of the consumers of a domain, whose pods may wait for it."""
        return self._consuming_replicas(*domain_itself(vendor, old, new))

    def _consuming_sets(self, key: DomainKey) -> Iterator[SetKey]:
        for consumer in self._fabric_lookup.consumers(key):
            yield SetKey(key.namespace, consumer.workload.metadata.name)

    def _consuming_replicas(self, key: DomainKey) -> Iterator[ReplicaKey | FanOut]:
        return consuming_replicas(self._caches, self._fabric_lookup, key)

    def sets_of_definition(self, vendor: str, _old: object, _new: object) -> Iterator[SetKey | FanOut]:
        """All sets with domains of a vendor, whose statuses say why its kind is not served."""
        return self.sets_with_domains(vendor)

    def sets_with_domains(self, vendor: str = "") -> Iterator[SetKey | FanOut]:
        """All sets with domains, or with domains of one vendor: its kind or its channels appeared or
        disappeared."""
        for workload in self._caches.sets:
            requirements = chain.from_iterable(domain_requirements(workload, self._caches.fabrics).values())
            if not any(vendor in ("", requirement.vendor) for requirement in requirements):
                continue
            key = SetKey(workload.metadata.namespace, workload.metadata.name)
            yield key
            yield all_replicas(self._caches, key, workload)
            yield FanOut((*key, vendor), partial(self._fabric_lookup.keys_of, workload))
