"""Looks up fabric domains in the caches: the domains of a set or a replica, the sets that require a domain,
and the snapshot from which a domain is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from msgspec.structs import replace

from grove.api.naming import names
from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.domain_pods import NO_PODS
from grove.fabrics.membership import GroupCount, Members, domains_of_replica, membership_in
from grove.fabrics.provider import Domain, FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirements, domain_requirements
from grove.fabrics.resolved import DomainReport, ReplicaDomains, ResolvedDomain
from grove.operator.caches.registry import BY_CLAIM, BY_DOMAIN, BY_OWNER, BY_SET, Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import DomainKey, SetKey
from grove.operator.observers.domain_pods import domain_pods
from grove.plan.desired.limits import present
from grove.plan.fabric.model import ChannelHolder, DomainConsumer, DomainSnapshot
from grove.plan.fabric.recreation import is_to_be_recreated
from grove.plan.fabric.resolution import ObservedDomain, resolve, resolve_replica, resolve_set
from grove.plan.members.pod_state import terminating, unschedulable_since
from grove.plan.ownership.ownership import keep_owned
from grove.plan.snapshot import Snapshot

ReportOf = Callable[[DomainKey], DomainReport]


def latest_report(states: KeyStates, key: DomainKey) -> DomainReport:
    """What the latest pass over a domain reports to the sets and replicas that require it."""
    state = states.find(key)
    if state is None:
        return DomainReport()
    return replace(state.report, failure=next(iter(state.errors.of_set), None))


class FabricLookup:
    """Looks up domains and their consumers."""

    def __init__(self, caches: Caches) -> None:
        self._caches, self._fabrics = caches, caches.fabrics

    def of_replica(self, snapshot: Snapshot, report_of: ReportOf) -> ReplicaDomains:
        """The domains that the pods of a replica join, with the latest reports of their own passes; empty for
        most."""
        workload = snapshot.workload
        if not (requirements := domain_requirements(workload, self._fabrics)):
            return {}
        for requirement in chain.from_iterable(requirements.values()):
            self._caches.fabric_nodes.require(requirement.vendor)
        namespace = workload.metadata.namespace
        observe = partial(self._observe_with_pods, namespace)
        found = resolve_replica(
            workload, requirements, self._fabrics, snapshot.index, _group_members(snapshot), observe
        )
        return {
            clique: {
                member: tuple(_reported(each, namespace, report_of) for each in domains)
                for member, domains in of_members.items()
            }
            for clique, of_members in found.items()
        }

    def of_set(self, workload: PodCliqueSet, report_of: ReportOf) -> tuple[ResolvedDomain, ...]:
        """The domains of a set, with the latest reports of their own passes. There are none for a set above
        the limit on pods: the number of its domains is unbounded, and no new ones are created for it."""
        if self._caches.sizes.excess(workload) is not None:
            return ()
        namespace, count = workload.metadata.namespace, self._group_count(workload)
        observe = partial(self._observe_with_pods, namespace)
        return tuple(
            _reported(domain, namespace, report_of)
            for domain in resolve_set(workload, self._fabrics, count, observe)
        )

    def _observe(self, namespace: str, provider: FabricDomainProvider, name: str) -> ObservedDomain:
        """What the caches have under the name of a domain."""
        cache = self._caches.domains[provider.vendor]
        found = cache.get(namespace, name)
        template = (
            self._caches.claim_templates.get(namespace, provider.template_name(found)) if found else None
        )
        served = cache.synced.is_set()
        return ObservedDomain(
            served,
            not served and self._caches.outdated(cache.resource),
            found,
            template.metadata if template is not None else None,
            self._caches.claim_templates.synced.is_set(),
            self._caches.fabric_nodes.count(provider.vendor),
        )

    def _observe_with_pods(self, namespace: str, provider: FabricDomainProvider, name: str) -> ObservedDomain:
        observed = self._observe(namespace, provider, name)
        if observed.found is None:
            return observed
        pods = self._pods(namespace, provider.template_name(observed.found))
        return replace(observed, pods=domain_pods(self._caches.fabric_nodes, provider, observed.found, pods))

    def _pods(self, namespace: str, template: str) -> list[Pod]:
        """The pods that join a domain, by the name of its claim template."""
        return self._caches.pods.by_index(BY_CLAIM, (namespace, template))

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
        """The sets that require a domain, and its state for each of them."""
        provider = self._fabrics.of(key.vendor)
        observed = self._observe(key.namespace, provider, key.name)
        found = []
        for workload in self._possible_consumers(key):
            if workload.metadata.deletion_timestamp is None:
                count = self._group_count(workload)
                if membership := membership_in(workload, self._fabrics, key.vendor, key.name, count):
                    resolved = resolve(workload, provider, key.name, membership, observed)
                    found.append(DomainConsumer(workload, membership, resolved.state))
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
        pods = self._pods(key.namespace, provider.template_name(found) if found else key.name)
        unschedulable = tuple(since for pod in pods if (since := unschedulable_since(pod)) is not None)
        members = sum(not terminating(pod) for pod in pods)
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
            pods=domain_pods(self._caches.fabric_nodes, provider, found, pods) if found else NO_PODS,
            channels=self._caches.fabric_nodes.count(key.vendor),
            members=members,
            unschedulable=unschedulable,
            holders=tuple(self._holders(key, provider)) if unschedulable else (),
            restarted=tuple(pods) if found is not None and is_to_be_recreated(found) else (),
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


def _reported(domain: ResolvedDomain, namespace: str, report_of: ReportOf) -> ResolvedDomain:
    return replace(domain, report=report_of(DomainKey(domain.provider.vendor, namespace, domain.name)))


def _group_members(snapshot: Snapshot) -> Members:
    """The replicas of a group in the plan of a replica, by the group's name in the set: from the same objects
    as its layout (`grove.plan.desired.expand`), which is built without those that the set does not own."""
    owned, set_name = keep_owned(snapshot), snapshot.workload.metadata.name
    held = present(owned) if snapshot.held else None
    templates = snapshot.workload.spec.template.pod_clique_scaling_groups
    counts = {group.name: group.replicas for group in templates}

    def members(group: str) -> Iterable[int]:
        name = names.group(set_name, snapshot.index, group)
        if held is not None:
            return held.groups[name]
        found = owned.groups.get(name)
        return range(counts[group] if found is None else found.spec.replicas)

    return members
