"""Looks up fabric domains in the caches: the domains of a set or a replica, the sets that require a domain,
and the snapshot from which a domain is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.naming import names
from grove.api.types.common import LastError
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.membership import (
    DomainMembership,
    GroupCount,
    Members,
    domains_of_replica,
    membership_in,
    memberships,
)
from grove.fabrics.provider import Domain, FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirements, domain_requirements
from grove.operator.caches.registry import BY_CLAIM, BY_DOMAIN, BY_OWNER, BY_SET, Caches
from grove.operator.keys import DomainKey, ReplicaKey, SetKey
from grove.plan.fabric.channels import unschedulable_since
from grove.plan.fabric.model import ChannelHolder, DomainConsumer, DomainSnapshot
from grove.plan.fabric.state import DomainState, domain_state, template_state, with_template_state
from grove.plan.fabric.status import DomainObservation

_NOTHING: Mapping[str, Mapping[str, Domain] | None] = {}


class FabricLookup:
    """Looks up domains and their consumers."""

    def __init__(self, caches: Caches) -> None:
        self._caches, self._fabrics = caches, caches.fabrics

    def of_replica(
        self, key: ReplicaKey, workload: PodCliqueSet, members: Members
    ) -> Mapping[str, Mapping[str, Domain] | None]:
        """By vendor, the existing domains that a replica requires, with these replicas of its groups; None if
        the vendor's kind is not served or not synced."""
        if not (requirements := domain_requirements(workload, self._fabrics)):
            return _NOTHING
        found: dict[str, dict[str, Domain] | None] = {}
        for requirement, name in domains_of_replica(workload, requirements, key.replica, members):
            self._caches.fabric_nodes.require(requirement.vendor)
            cache = self._caches.domains[requirement.vendor]
            if not cache.synced.is_set():
                found[requirement.vendor] = None
            elif (inside := found.setdefault(requirement.vendor, {})) is not None and (
                domain := cache.get(key.namespace, name)
            ):
                inside[name] = domain
        return found

    def channels(self, vendors: Iterable[str]) -> dict[str, int]:
        """By vendor, how many pods can be in domains at once; vendors without a known count are left out."""
        counted = ((vendor, self._caches.fabric_nodes.count(vendor)) for vendor in vendors)
        return {vendor: count for vendor, count in counted if count is not None}

    def templates(
        self, domains: Mapping[str, Mapping[str, Domain] | None]
    ) -> dict[tuple[str, str], DomainState]:
        """The domains whose claim template is not usable, with its state."""
        return {
            (vendor, name): state
            for vendor, found in domains.items()
            for name, domain in (found or {}).items()
            if (state := self._template_state(vendor, domain)) is not DomainState.USABLE
        }

    def _template_state(self, vendor: str, domain: Domain) -> DomainState:
        provider = self._fabrics.of(vendor)
        return template_state(provider, domain, self._template(domain.metadata.namespace, provider, domain))

    def _template(
        self, namespace: str, provider: FabricDomainProvider, domain: Domain | None
    ) -> ObjectMeta | None:
        if domain is None:
            return None
        found = self._caches.claim_templates.get(namespace, provider.template_name(domain))
        return found.metadata if found is not None else None

    def of_set(self, workload: PodCliqueSet) -> dict[DomainKey, DomainMembership]:
        """The domains of a set. For a set above the limit on pods there are none: the number of its domains
        is unbounded, and no new ones are created for it."""
        if self._caches.sizes.excess(workload) is not None:
            return {}
        namespace = workload.metadata.namespace
        return {
            DomainKey(vendor, namespace, name): membership
            for (vendor, name), membership in memberships(
                workload, self._fabrics, self._group_count(workload)
            ).items()
        }

    def keys_of(self, workload: PodCliqueSet) -> Iterator[DomainKey]:
        """The keys of the domains of a set, replica by replica; shared domains are repeated."""
        if (
            not (found := domain_requirements(workload, self._fabrics))
            or self._caches.sizes.excess(workload) is not None
        ):
            return
        for replica in range(workload.spec.replicas):
            yield from self._keys_in(workload, found, replica)

    def keys_in(self, workload: PodCliqueSet, replica: int) -> Iterator[DomainKey]:
        """The keys of the domains of one replica of a set."""
        found = domain_requirements(workload, self._fabrics)
        if found and replica < workload.spec.replicas and self._caches.sizes.excess(workload) is None:
            yield from self._keys_in(workload, found, replica)

    def _keys_in(
        self, workload: PodCliqueSet, found: DomainRequirements, replica: int
    ) -> Iterator[DomainKey]:
        count = self._group_count(workload)
        for requirement, name in domains_of_replica(
            workload, found, replica, lambda group: range(count(replica, group))
        ):
            yield DomainKey(requirement.vendor, workload.metadata.namespace, name)

    def domain_observations(
        self, workload: PodCliqueSet, failures: Mapping[DomainKey, LastError], busy: Mapping[DomainKey, str]
    ) -> list[DomainObservation]:
        """The state of each domain of a set, for the status of the set."""
        return [
            replace(
                self._observe_domain(workload, key, membership),
                failure=failures.get(key),
                busy=busy.get(key, ""),
            )
            for key, membership in self.of_set(workload).items()
        ]

    def _observe_domain(
        self, workload: PodCliqueSet, key: DomainKey, membership: DomainMembership
    ) -> DomainObservation:
        cache = self._caches.domains[key.vendor]
        found = cache.get(key.namespace, key.name)
        state = (
            domain_state(found, membership.requirement, workload)
            if cache.synced.is_set()
            else DomainState.NOT_SERVED
        )
        provider = self._fabrics.of(key.vendor)
        if found is None:
            return DomainObservation(key.name, provider, membership, state)
        state = with_template_state(state, self._template_state(key.vendor, found))
        template = provider.template_name(found)
        pods = self._caches.pods.by_index(BY_CLAIM, (key.namespace, template))
        nodes = frozenset(pod.spec.node_name for pod in pods if pod.spec.node_name)
        return DomainObservation(key.name, provider, membership, state, found, template=template, nodes=nodes)

    def owned(self, uid: str) -> tuple[Domain, ...]:
        """The domains that name a set as an owner."""
        return tuple(
            chain.from_iterable(cache.by_index(BY_OWNER, uid) for cache in self._caches.domains.values())
        )

    def owned_keys(self, uid: str) -> Iterator[DomainKey]:
        for vendor, cache in self._caches.domains.items():
            for domain in cache.by_index(BY_OWNER, uid):
                yield DomainKey(vendor, domain.metadata.namespace, domain.metadata.name)

    def consumers(self, key: DomainKey) -> list[DomainConsumer]:
        """The sets that require a domain."""
        found = []
        for workload in self._possible_consumers(key):
            if workload.metadata.deletion_timestamp is None:
                count = self._group_count(workload)
                if membership := membership_in(workload, self._fabrics, key.vendor, key.name, count):
                    found.append(DomainConsumer(workload, membership))
        return found

    def snapshot(self, key: DomainKey) -> DomainSnapshot | None:
        """The snapshot of a domain; None if the vendor's kind is not served or not synced."""
        provider, cache = self._fabrics.of(key.vendor), self._caches.domains[key.vendor]
        if not cache.synced.is_set():
            return None
        found, consumers = cache.get(key.namespace, key.name), self.consumers(key)
        former, unknown_owner = self._owners(
            key, found, {consumer.workload.metadata.uid for consumer in consumers}
        )
        template = provider.template_name(found) if found else key.name
        pods = self._caches.pods.by_index(BY_CLAIM, (key.namespace, template))
        unschedulable = tuple(since for pod in pods if (since := unschedulable_since(pod)) is not None)
        return DomainSnapshot(
            provider,
            key.namespace,
            key.name,
            found,
            tuple(consumers),
            former,
            tuple(chain.from_iterable(map(self._groups, former))),
            unknown_owner,
            in_use=bool(pods),
            template=self._template(key.namespace, provider, found),
            unschedulable=unschedulable,
            holders=tuple(self._holders(key, provider)) if unschedulable else (),
        )

    def _holders(self, key: DomainKey, provider: FabricDomainProvider) -> Iterator[ChannelHolder]:
        """The other domains that occupy nodes."""
        labelled = self._caches.fabric_nodes.nodes_by_domain(key.vendor)
        for domain in self._caches.domains[key.vendor]:
            meta = domain.metadata
            nodes = {*provider.observe(domain).nodes, *labelled.get(meta.uid, ())}
            if nodes and (meta.namespace, meta.name) != (key.namespace, key.name):
                sets = (owner for owner in meta.owner_references if owner.kind == PodCliqueSet.KIND.name)
                owners = tuple(owner.name for owner in sets)
                yield ChannelHolder(meta.namespace, meta.name, owners, tuple(sorted(nodes)))

    def domains_of_template(self, namespace: str, template: str) -> Iterator[DomainKey]:
        """The domains whose claim template has this name."""
        for vendor, cache in self._caches.domains.items():
            for domain in cache.by_index(BY_CLAIM, (namespace, template)):
                yield DomainKey(vendor, namespace, domain.metadata.name)

    def _owners(
        self, key: DomainKey, found: Domain | None, consumers: set[str]
    ) -> tuple[tuple[PodCliqueSet, ...], bool]:
        """The owners of a domain that no longer require it, and whether it has an unknown owner."""
        former, unknown_owner = [], False
        for owner in found.metadata.owner_references if found else ():
            if owner.kind != PodCliqueSet.KIND.name or owner.uid in consumers:
                continue
            workload = self._caches.sets.get(key.namespace, owner.name)
            if workload is None or workload.metadata.uid != owner.uid:
                unknown_owner = True
            elif workload.metadata.deletion_timestamp is None:
                former.append(workload)
        return tuple(former), unknown_owner

    def _groups(self, workload: PodCliqueSet) -> list[PodCliqueScalingGroup]:
        """The groups of a set, if their replicas determine its domains."""
        if not self.depends_on_group_replicas(workload):
            return []
        key = SetKey(workload.metadata.namespace, workload.metadata.name)
        return self._caches.groups.by_index(BY_SET, key)

    def _possible_consumers(self, key: DomainKey) -> Iterator[PodCliqueSet]:
        """The sets that may require a domain, by its name or a prefix of its name."""
        segments = key.name.split("-")
        roots = ("-".join(segments[:count]) for count in range(1, len(segments)))
        named = (key.name, *(f"{root}-*" for root in roots))
        sets = (self._caches.sets.by_index(BY_DOMAIN, (key.vendor, key.namespace, name)) for name in named)
        found = {workload.metadata.name: workload for workload in chain.from_iterable(sets)}
        return iter(found.values())

    def depends_on_group_replicas(self, workload: PodCliqueSet) -> bool:
        """Whether the domains of a set depend on the replicas of its groups."""
        requirements = chain.from_iterable(domain_requirements(workload, self._fabrics).values())
        return any(requirement.scope is Scope.GROUP_REPLICA for requirement in requirements)

    def _group_count(self, workload: PodCliqueSet) -> GroupCount:
        """A function for the replicas of a group: its own if it exists, else those of the template."""
        meta = workload.metadata
        templates = {group.name: group.replicas for group in workload.spec.template.pod_clique_scaling_groups}

        def count(replica: int, group: str) -> int:
            found = self._caches.groups.get(meta.namespace, names.group(meta.name, replica, group))
            return found.spec.replicas if found else templates[group]

        return count
