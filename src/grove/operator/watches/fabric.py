"""Event mapping for fabric domains: which watch event enqueues which domain, and which sets and replicas a
change of a domain enqueues. Sets without domains enqueue nothing here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, Scope
from grove.fabrics.requirements import domain_requirements
from grove.operator.caches.object_changes import changed
from grove.operator.caches.registry import Caches
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey, replica_of
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.enqueue_slices import SlicedEnqueuer
from grove.operator.watches.enqueue_slices import replicas as replicas_of
from grove.operator.watches.workloads import replay_and_subscribe
from grove.plan.fabric.channels import unschedulable_since

EnqueueKey = Callable[[Key], None]


def register_fabric_handlers(caches: Caches, fabric_lookup: FabricLookup, enqueue: EnqueueKey) -> None:
    """Subscribe to the caches; existing sets and domains are mapped at once."""
    handlers = _FabricEventHandlers(caches, fabric_lookup, enqueue)
    replay_and_subscribe(caches.sets, handlers.on_set)
    caches.groups.subscribe(handlers.on_group)
    caches.pods.subscribe(handlers.on_pod)
    caches.claim_templates.subscribe(handlers.on_template)
    for vendor, cache in caches.domains.items():
        replay_and_subscribe(cache, partial(handlers.on_domain, vendor))
        cache.on_synced_or_absent(handlers.on_availability)
    caches.fabric_nodes.subscribe(handlers.on_availability)


class _FabricEventHandlers:
    def __init__(self, caches: Caches, fabric_lookup: FabricLookup, enqueue: EnqueueKey) -> None:
        self._caches, self._fabric_lookup, self._enqueue = caches, fabric_lookup, enqueue
        self._slices = SlicedEnqueuer(enqueue)

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """Enqueues the domains that a set requires, required before, or owns."""
        if old is not None and new is not None and not changed(old, new):
            return
        found = new or old
        assert found is not None
        known = [workload for workload in (old, new) if workload is not None]

        def domains() -> Iterator[Key]:
            for workload in known:
                yield from self._fabric_lookup.keys_of(workload)
            yield from self._fabric_lookup.owned_keys(found.metadata.uid)

        self._slices.start(("domains", found.metadata.namespace, found.metadata.name), domains)

    def on_group(self, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> None:
        """Enqueues domains of a set whose group is scaled, if they depend on the replicas of the group."""
        if old is not None and new is not None and old.spec.replicas == new.spec.replicas:
            return
        found = new or old
        assert found is not None
        name = found.metadata.labels.get(labels.PART_OF, "")
        workload = self._caches.sets.get(found.metadata.namespace, name)
        replica = replica_of(found.metadata)
        if workload is None or replica is None or not self._fabric_lookup.depends_on_group_replicas(workload):
            return
        for key in self._fabric_lookup.keys_in(workload, replica.replica):
            self._enqueue(key)
        for key in self._fabric_lookup.owned_keys(workload.metadata.uid) if self._scaled_in(old, new) else ():
            self._enqueue(key)

    @staticmethod
    def _scaled_in(old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> bool:
        return old is not None and (new is None or new.spec.replicas < old.spec.replicas)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Enqueues the domains of a pod that is deleted, or that becomes unschedulable: the plan of the
        domain finds which other domains occupy the nodes."""
        found = new or old
        assert found is not None
        if not found.spec.resource_claims or old is None:
            return
        if new is not None and unschedulable_since(old) == unschedulable_since(new):
            return
        for claim in found.spec.resource_claims:
            if template := claim.resource_claim_template_name:
                for key in self._fabric_lookup.domains_of_template(found.metadata.namespace, template):
                    self._enqueue(key)

    def on_domain(self, vendor: str, old: Domain | None, new: Domain | None) -> None:
        """Enqueues the domain, its owners and its consumers, whose statuses report it. If the domain was
        created, changed or deleted, also the replicas of its consumers, whose pods may wait for it."""
        found = new or old
        assert found is not None
        key = DomainKey(vendor, found.metadata.namespace, found.metadata.name)
        more = old is None or new is None or changed(old, new)
        if more or self._partitions(vendor, old) != self._partitions(vendor, new):
            self._enqueue(key)
        for each in (old, new):
            for owner in each.metadata.owner_references if each is not None else ():
                if owner.kind == PodCliqueSet.KIND.name:
                    self._enqueue(SetKey(key.namespace, owner.name))
        self._enqueue_consumers(key, replicas=more)

    def on_template(
        self, old: ResourceClaimTemplateObject | None, new: ResourceClaimTemplateObject | None
    ) -> None:
        """Enqueues a domain and its consumers, if a template that the domain does not own has or had the name
        of its claim template."""
        found = new or old
        assert found is not None
        for key in self._fabric_lookup.domains_of_template(found.metadata.namespace, found.metadata.name):
            provider = self._caches.fabrics.of(key.vendor)
            domain = self._caches.domains[key.vendor].get(key.namespace, key.name)
            if domain is not None and not all(
                provider.owns_template(domain, each.metadata) for each in (old, new) if each is not None
            ):
                self._enqueue(key)
                self._enqueue_consumers(key, replicas=True)

    def _enqueue_consumers(self, key: DomainKey, *, replicas: bool) -> None:
        for consumer in self._fabric_lookup.consumers(key):
            set_name = consumer.workload.metadata.name
            self._enqueue(SetKey(key.namespace, set_name))
            if replicas and consumer.membership.requirement.scope is Scope.SHARED:
                self._enqueue_replicas(consumer.workload)
            elif replicas:
                self._enqueue(ReplicaKey(key.namespace, set_name, consumer.membership.replicas[0]))

    def _enqueue_replicas(self, workload: PodCliqueSet) -> None:
        key = SetKey(workload.metadata.namespace, workload.metadata.name)
        self._slices.start(key, partial(replicas_of, self._caches, key, workload))

    def _partitions(self, vendor: str, domain: Domain | None) -> tuple[str, ...]:
        return self._caches.fabrics.of(vendor).observe(domain).partitions if domain is not None else ()

    def on_availability(self, vendor: str = "") -> None:
        """Enqueues all sets with domains, or with domains of one vendor: its kind or its channels appeared or
        disappeared."""
        for workload in self._caches.sets:
            requirements = chain.from_iterable(domain_requirements(workload, self._caches.fabrics).values())
            if not any(vendor in ("", requirement.vendor) for requirement in requirements):
                continue
            namespace, set_name = workload.metadata.namespace, workload.metadata.name
            self._enqueue(SetKey(namespace, set_name))
            self._enqueue_replicas(workload)
            domains = partial(self._fabric_lookup.keys_of, workload)
            self._slices.start((namespace, set_name, vendor), domains)
