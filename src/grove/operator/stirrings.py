"""Which change wakes which fabric domain, and whom a domain wakes. For sets without domains, nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from grove.api import labels
from grove.api.cluster import ResourceClaimTemplateObject
from grove.api.groups import PodCliqueScalingGroup
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Domain, Scope
from grove.fabrics.resolve import demands
from grove.operator.caches import Caches
from grove.operator.changes import changed
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey, replica_of
from grove.operator.neighbourhood import Neighbourhood
from grove.operator.slices import Slices
from grove.operator.slices import replicas as replicas_of
from grove.operator.wakes import follow
from grove.plan.seats import unschedulable_since

Wake = Callable[[Key], None]


def wire_domains(caches: Caches, neighbourhood: Neighbourhood, wake: Wake) -> None:
    """From now on, changes wake domains, and domains wake those who wait for them."""
    waker = _Waker(caches, neighbourhood, wake)
    follow(caches.sets, waker.on_set)
    caches.groups.subscribe(waker.on_group)
    caches.pods.subscribe(waker.on_pod)
    caches.claim_templates.subscribe(waker.on_template)
    for vendor, cache in caches.domains.items():
        follow(cache, partial(waker.on_domain, vendor))
        cache.on_settled(waker.on_sight)
    caches.channels.subscribe(waker.on_sight)


class _Waker:
    def __init__(self, caches: Caches, neighbourhood: Neighbourhood, wake: Wake) -> None:
        self._caches, self._neighbourhood, self._wake = caches, neighbourhood, wake
        self._slices = Slices(wake)

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """The domains that it is in, was in, or owns."""
        if old is not None and new is not None and not changed(old, new):
            return
        found = new or old
        assert found is not None
        known = [workload for workload in (old, new) if workload is not None]

        def domains() -> Iterator[Key]:
            for workload in known:
                yield from self._neighbourhood.keys_of(workload)
            yield from self._neighbourhood.keys_owned(found.metadata.uid)

        self._slices.feed((found.metadata.namespace, found.metadata.name), domains)

    def on_group(self, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> None:
        """A group that is scaled, if the domains of its set depend on that."""
        if old is not None and new is not None and old.spec.replicas == new.spec.replicas:
            return
        found = new or old
        assert found is not None
        name = found.metadata.labels.get(labels.PART_OF, "")
        workload = self._caches.sets.get(found.metadata.namespace, name)
        place = replica_of(found.metadata)
        if workload is None or place is None or not self._neighbourhood.counts_matter(workload):
            return
        for key in self._neighbourhood.keys_in(workload, place.replica):
            self._wake(key)
        for key in self._neighbourhood.keys_owned(workload.metadata.uid) if self._scaled_in(old, new) else ():
            self._wake(key)

    @staticmethod
    def _scaled_in(old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> bool:
        return old is not None and (new is None or new.spec.replicas < old.spec.replicas)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod that goes leaves its domain; for one that finds no node, somebody looks who has them."""
        found = new or old
        assert found is not None
        if not found.spec.resource_claims or old is None:
            return
        if new is not None and unschedulable_since(old) == unschedulable_since(new):
            return
        for claim in found.spec.resource_claims:
            if template := claim.resource_claim_template_name:
                for key in self._neighbourhood.claimed(found.metadata.namespace, template):
                    self._wake(key)

    def on_domain(self, vendor: str, old: Domain | None, new: Domain | None) -> None:
        """Itself, those who own it, and those who need it: all of them tell how it stands, and if it has
        come, changed or gone, their replicas look whether their pods may join it."""
        found = new or old
        assert found is not None
        key = DomainKey(vendor, found.metadata.namespace, found.metadata.name)
        more = old is None or new is None or changed(old, new)
        if more or self._partitions(vendor, old) != self._partitions(vendor, new):
            self._wake(key)
        for each in (old, new):
            for owner in each.metadata.owner_references if each is not None else ():
                if owner.kind == PodCliqueSet.KIND.name:
                    self._wake(SetKey(key.namespace, owner.name))
        self._wake_users(key, replicas=more)

    def on_template(
        self, old: ResourceClaimTemplateObject | None, new: ResourceClaimTemplateObject | None
    ) -> None:
        """Those who need a domain, if a template that is not the domain's had the name of its own, or has."""
        found = new or old
        assert found is not None
        for key in self._neighbourhood.claimed(found.metadata.namespace, found.metadata.name):
            provider = self._caches.fabrics.of(key.vendor)
            domain = self._caches.domains[key.vendor].get(key.namespace, key.name)
            if domain is not None and not all(
                provider.owns_template(domain, each.metadata) for each in (old, new) if each is not None
            ):
                self._wake(key)
                self._wake_users(key, replicas=True)

    def _wake_users(self, key: DomainKey, *, replicas: bool) -> None:
        for user in self._neighbourhood.users(key):
            set_name = user.workload.metadata.name
            self._wake(SetKey(key.namespace, set_name))
            if replicas and user.stay.demand.scope is Scope.SHARED:
                self._wake_replicas(user.workload)
            elif replicas:
                self._wake(ReplicaKey(key.namespace, set_name, user.stay.replicas[0]))

    def _wake_replicas(self, workload: PodCliqueSet) -> None:
        key = SetKey(workload.metadata.namespace, workload.metadata.name)
        self._slices.feed(key, partial(replicas_of, self._caches, key, workload))

    def _partitions(self, vendor: str, domain: Domain | None) -> tuple[str, ...]:
        return self._caches.fabrics.of(vendor).observe(domain).partitions if domain is not None else ()

    def on_sight(self, vendor: str = "") -> None:
        """Everybody who needs domains, or those of one vendor: its kind has come or gone, or its channels
        have."""
        for workload in self._caches.sets:
            asked = chain.from_iterable(demands(workload, self._caches.fabrics).values())
            if not any(vendor in ("", demand.vendor) for demand in asked):
                continue
            namespace, set_name = workload.metadata.namespace, workload.metadata.name
            self._wake(SetKey(namespace, set_name))
            self._wake_replicas(workload)
            domains = partial(self._neighbourhood.keys_of, workload)
            self._slices.feed((namespace, set_name, vendor), domains)
