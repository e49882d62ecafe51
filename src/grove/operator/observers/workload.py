"""Reads snapshots for plans from the caches: all objects of a replica, or of a set that is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import partial

from msgspec.structs import replace

from grove.api.naming import names
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.membership import Members
from grove.operator.caches.registry import BY_REPLICA, BY_SET, Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.terminating_namespaces import is_in_terminating_namespace
from grove.operator.keys import ReplicaKey, SetKey, replica_of
from grove.operator.observers.claim_sources import ClaimSourcesObserver
from grove.operator.observers.claims import SharedClaims
from grove.operator.observers.fabric import FabricLookup, latest_report
from grove.operator.observers.placement import PlacementState
from grove.operator.observers.priority_classes import PriorityClassLookup
from grove.operator.observers.schedulers import SchedulerLookup
from grove.operator.observers.topology import TopologyLookup
from grove.plan.desired.limits import is_held, members
from grove.plan.snapshot import OwnedObjects, Snapshot


class Observer:
    """Reads snapshots. Stores in the records of replicas which pods left the cache: deleted pods, and lost
    ones, which did not terminate before."""

    def __init__(
        self,
        caches: Caches,
        states: KeyStates | None = None,
        placement: PlacementState | None = None,
        init_image: str = "",
        topologies: TopologyLookup | None = None,
        schedulers: SchedulerLookup | None = None,
        fabric_lookup: FabricLookup | None = None,
        priority_classes: PriorityClassLookup | None = None,
        claim_sources: ClaimSourcesObserver | None = None,
    ) -> None:
        self._caches, self._states = caches, states if states is not None else KeyStates()
        self._placement = placement
        self._init_image = init_image
        self._topologies = topologies or TopologyLookup(caches, enabled=False)
        self._schedulers = schedulers or SchedulerLookup(caches, None)
        self._fabric_lookup = fabric_lookup or FabricLookup(caches)
        self.priority_classes = priority_classes or PriorityClassLookup(caches)
        self._claim_sources = claim_sources
        self.shared_claims = SharedClaims(caches)
        caches.pods.subscribe(self._on_pod)

    def replica(self, key: ReplicaKey) -> Snapshot | None:
        """The snapshot of a replica; None if the set does not exist."""
        caches = self._caches
        workload = caches.sets.get(key.namespace, key.set_name)
        if workload is None:
            return None
        groups = {group.metadata.name: group for group in caches.groups.by_index(BY_REPLICA, key)}
        cliques = self._cliques(key)
        held = self._is_held(key, workload, groups, cliques)
        group_replicas = partial(self._group_replicas, key, workload, cliques if held else None)
        gangs = self._gangs(key, workload, group_replicas)
        pods = tuple(caches.pods.by_index(BY_REPLICA, key))
        deleted_pods, lost_pods = self._missing_pods(key, gangs)
        scheduler = self._schedulers.of(workload, key.replica, gangs, pods)
        topology, fallbacks = self._topologies.of(workload), self._topologies.of_fallbacks(workload)
        levels = {
            level for each in (topology, *fallbacks) if each is not None for level in each.keys.values()
        }
        snapshot = Snapshot(
            workload=workload,
            index=key.replica,
            service=caches.services.get(key.namespace, names.service(key.set_name, key.replica)),
            groups=groups,
            cliques=cliques,
            gangs=gangs,
            autoscalers=self._autoscalers(key, workload),
            pods=pods,
            deleted_pods=deleted_pods,
            lost_pods=lost_pods,
            namespace_terminating=is_in_terminating_namespace(self._states, key, workload.metadata.uid),
            binding=caches.role_bindings.get(key.namespace, names.role(key.set_name)),
            init_image=self._init_image,
            start_order=caches.start_order,
            placements=self._placement.of(key, pods, levels) if self._placement is not None else None,
            topology=topology,
            fallback_topologies=fallbacks,
            scheduler=scheduler,
            scheduler_objects=self._schedulers.objects(key, scheduler),
            shared=self.shared_claims.of_replica(key, workload, groups, cliques),
            held=held,
            kind_problem=self._schedulers.kind_problem(scheduler),
            priority=self.priority_classes.of(workload),
            node_labels=self._node_labels(pods, levels),
            unused_labels=caches.nodes.unused(levels),
        )
        domains = self._fabric_lookup.of_replica(snapshot, partial(latest_report, self._states))
        if domains:
            snapshot = replace(snapshot, domains=domains)
        places = scheduler is not None and scheduler.tries_fallbacks  # where the operator itself places gangs
        if snapshot.placements is None or self._claim_sources is None or not places:
            return snapshot
        sources = self._claim_sources.of(workload, domains)
        return replace(snapshot, placements=replace(snapshot.placements, sources=sources))

    def _node_labels(self, pods: tuple[Pod, ...], levels: Set[str]) -> Mapping[str, Mapping[str, str]] | None:
        """The labels of the nodes of the pods; not read for sets without levels, nor where gangs are
        placed."""
        if self._placement is not None or not levels:
            return None
        nodes = self._caches.nodes
        nodes.require(levels)
        return nodes.labels_of({pod.spec.node_name for pod in pods}, levels)

    def owned_objects(self, key: SetKey) -> OwnedObjects:
        """All objects with the labels of a set, and the fabric domains that it owns."""
        caches = self._caches
        workload = caches.sets.get(key.namespace, key.name)
        return OwnedObjects(
            services=tuple(caches.services.by_index(BY_SET, key)),
            groups=tuple(caches.groups.by_index(BY_SET, key)),
            cliques=tuple(caches.cliques.by_index(BY_SET, key)),
            gangs=tuple(caches.gangs.by_index(BY_SET, key)),
            autoscalers=tuple(caches.autoscalers.by_index(BY_SET, key)),
            claims=tuple(caches.claims.by_index(BY_SET, key)),
            pods=tuple(caches.pods.by_index(BY_SET, key)),
            access=caches.access(key),
            domains=self._fabric_lookup.owned(workload.metadata.uid) if workload else (),
        )

    def _gangs(self, key: ReplicaKey, workload: PodCliqueSet, group_replicas: Members) -> dict[str, PodGang]:
        """Gangs by label, and by expected name: upstream's gangs have no label for their replica."""
        gangs = {gang.metadata.name: gang for gang in self._caches.gangs.by_index(BY_REPLICA, key)}
        for name in self._expected_gangs(key, workload, group_replicas):
            if name not in gangs and (found := self._caches.gangs.get(key.namespace, name)):
                gangs[name] = found
        return gangs

    def _autoscalers(self, key: ReplicaKey, workload: PodCliqueSet) -> dict[str, HorizontalPodAutoscaler]:
        """Autoscalers by label, and by expected name as with gangs."""
        cache = self._caches.autoscalers
        if not len(cache):
            return {}
        found = {known.metadata.name: known for known in cache.by_index(BY_REPLICA, key)}
        template = workload.spec.template
        scaled = [clique.name for clique in template.cliques]
        scaled += [group.name for group in template.pod_clique_scaling_groups]
        for target in scaled:
            name = names.autoscaler(key.set_name, key.replica, target)
            if name not in found and (known := cache.get(key.namespace, name)):
                found[name] = known
        return found

    def _expected_gangs(self, key: ReplicaKey, workload: PodCliqueSet, group_replicas: Members) -> list[str]:
        expected = [names.base_gang(key.set_name, key.replica)]
        for template in workload.spec.template.pod_clique_scaling_groups:
            group_name = names.group(key.set_name, key.replica, template.name)
            expected += [
                names.scaled_gang(group_name, replica, template.min_available)
                for replica in group_replicas(template.name)
                if replica >= template.min_available
            ]
        return expected

    def _cliques(self, key: ReplicaKey) -> dict[str, PodClique]:
        return {clique.metadata.name: clique for clique in self._caches.cliques.by_index(BY_REPLICA, key)}

    def _is_held(
        self,
        key: ReplicaKey,
        workload: PodCliqueSet,
        groups: Mapping[str, PodCliqueScalingGroup],
        cliques: Mapping[str, PodClique],
    ) -> bool:
        sizes = self._caches.sizes
        return is_held(workload, key.replica, groups, cliques, sizes.requested(workload), sizes.limit)

    def _group_replicas(
        self, key: ReplicaKey, workload: PodCliqueSet, cliques: Mapping[str, PodClique] | None, group: str
    ) -> Iterable[int]:
        """The replica indexes of a group: all of `spec.replicas`, or those that have any of the `cliques`."""
        name = names.group(key.set_name, key.replica, group)
        templates = workload.spec.template.pod_clique_scaling_groups
        template = next(template for template in templates if template.name == group)
        if cliques is not None:
            return members(name, template.clique_names, cliques)
        found = self._caches.groups.get(key.namespace, name)
        return range(found.spec.replicas if found else template.replicas)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        found = new or old
        if found is None or (key := replica_of(found.metadata)) is None:
            return
        name = found.metadata.name
        if new is not None:
            if (state := self._states.find(key)) is not None and state.lost_pods:
                state.lost_pods.pop(name, None)
            return
        state = self._states.of(key)
        if found.metadata.deletion_timestamp is None:
            state.lost_pods = {**(state.lost_pods or {}), name: found}
        elif state.deleted_pods is None:
            state.deleted_pods = {name}
        else:
            state.deleted_pods.add(name)

    def _missing_pods(
        self, key: ReplicaKey, gangs: dict[str, PodGang]
    ) -> tuple[frozenset[str], tuple[Pod, ...]]:
        """The deleted and the lost pods that a gang still refers to; all others are forgotten."""
        state = self._states.find(key)
        if state is None or not (state.deleted_pods or state.lost_pods):
            return frozenset(), ()
        referenced = _referenced_pods(gangs)
        lost = {name: pod for name, pod in (state.lost_pods or {}).items() if name in referenced}
        deleted = (state.deleted_pods or set()) & referenced
        state.deleted_pods, state.lost_pods = deleted or None, lost or None
        return frozenset(deleted), tuple(lost.values())


def _referenced_pods(gangs: dict[str, PodGang]) -> set[str]:
    return {
        reference.name
        for gang in gangs.values()
        for group in gang.spec.pod_groups
        for reference in group.pod_references
    }
