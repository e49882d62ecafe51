"""Views of a set for commands: its replicas, gangs, groups, cliques and pods, each with its counts.

Pods are counted here; the counts of sets and groups come from their status. Labels decide which object
belongs to which. Pure: objects in, views out; the views are also what `-o json` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from grove.api.conditions import SCHEDULER_MESSAGE_SEPARATOR, ConditionType, GangReason
from grove.api.meta import Condition, ObjectMeta
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaim
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.plan.members import pod_state as state
from grove.plan.timestamps import timestamp
from grove.views.claim_view import ClaimIndex, ClaimView, NamespacedName, View
from grove.views.pod_reason import pod_reason
from grove.views.topology_view import TopologyView, topology_view

if TYPE_CHECKING:
    from grove.kube.cache.cache import HasMetadata

T = TypeVar("T", bound="HasMetadata")


class PodView(View, frozen=True):
    """A pod: its state, its node, and why it is not ready."""

    name: str
    state: str
    node: str = ""
    why: str = ""


class CliqueView(View, frozen=True):
    """A clique: of its `replicas` pods, `needed` must be ready and `ready` are."""

    name: str
    ready: int
    replicas: int
    needed: int
    gang: str
    pods: tuple[PodView, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    errors: tuple[str, ...] = ()


class GroupReplicaView(View, frozen=True):
    """One replica of a scaling group."""

    index: int
    gang: str
    cliques: tuple[CliqueView, ...] = ()
    claims: tuple[ClaimView, ...] = ()


class GroupView(View, frozen=True):
    """A scaling group: of its `replicas`, `needed` must be available and `available` are."""

    name: str
    available: int
    replicas: int
    needed: int
    members: tuple[GroupReplicaView, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    errors: tuple[str, ...] = ()


class GangView(View, frozen=True):
    """A gang, with the number of pods that it references."""

    name: str
    phase: str
    pods: int
    why: str = ""
    """Why it waits for nodes."""
    domains: Mapping[str, str] = {}
    """Where the operator has placed it: by the name of the gang, of a group replica or of a clique."""


class FabricDomainView(View, frozen=True):
    """A domain: of its `nodes`, `ready` are ready; more than one partition means that its fabric is split.
    `reason`: why its pods cannot use it."""

    name: str
    phase: str
    ready: int
    nodes: int
    partitions: tuple[str, ...] = ()
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether all its pods can use it."""
        return self.phase == "Ready" and not self.reason

    @property
    def state(self) -> str:
        """The phase, and why pods cannot use the domain although its nodes are ready."""
        return f"{self.phase} ({self.reason})" if self.phase == "Ready" and self.reason else self.phase


class ReplicaView(View, frozen=True):
    """One replica of a set."""

    index: int
    gangs: tuple[GangView, ...] = ()
    cliques: tuple[CliqueView, ...] = ()
    groups: tuple[GroupView, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    fabric_domains: tuple[FabricDomainView, ...] = ()


class SetView(View, frozen=True):
    """A set with everything below it."""

    namespace: str
    name: str
    available: int
    replicas: int
    created: str | None = None
    age_seconds: int | None = None
    terminating: bool = False
    topology: TopologyView | None = None
    errors: tuple[str, ...] = ()
    members: tuple[ReplicaView, ...] = ()
    claims: tuple[ClaimView, ...] = ()

    @property
    def pods(self) -> tuple[PodView, ...]:
        return tuple(pod for clique in self.cliques for pod in clique.pods)

    @property
    def cliques(self) -> tuple[CliqueView, ...]:
        """All cliques, including those of groups."""
        standalone = (clique for replica in self.members for clique in replica.cliques)
        return (
            *standalone,
            *(one for group in self.groups for part in group.members for one in part.cliques),
        )

    @property
    def groups(self) -> tuple[GroupView, ...]:
        return tuple(group for replica in self.members for group in replica.groups)

    @property
    def gangs(self) -> tuple[GangView, ...]:
        return tuple(gang for replica in self.members for gang in replica.gangs)

    @property
    def fabric_domains(self) -> tuple[FabricDomainView, ...]:
        """Each domain once, also if several replicas share it."""
        return tuple(dict.fromkeys(each for replica in self.members for each in replica.fabric_domains))

    @property
    def own_errors(self) -> tuple[str, ...]:
        """The errors of the set and of its topology."""
        problem = self.topology.problem if self.topology is not None else ""
        return (problem, *self.errors) if problem else self.errors

    @property
    def all_errors(self) -> tuple[str, ...]:
        """The errors of the set, of its topology, its groups and its cliques."""
        parts: tuple[GroupView | CliqueView, ...] = (*self.groups, *self.cliques)
        return (*self.own_errors, *(error for part in parts for error in part.errors))

    @property
    def settled(self) -> bool:
        """Whether each replica runs, and is counted as available, or is known to wait for nodes."""
        running = [all(gang.phase == "Running" for gang in replica.gangs) for replica in self.members]
        return (
            sum(running) == self.available
            and len(self.members) == self.replicas
            and all(replica.gangs for replica in self.members)
            and all(gang.phase == "Running" or gang.why for gang in self.gangs)
        )

    @property
    def ready(self) -> bool:
        """Whether all desired objects exist and are ready, and the statuses report it."""
        return (
            self.available == self.replicas == len(self.members)
            and all(clique.ready == clique.replicas == len(clique.pods) for clique in self.cliques)
            and all(gang.phase == "Running" for gang in self.gangs)
            and all(group.available == group.replicas for replica in self.members for group in replica.groups)
        )


class SetObjects(Struct, frozen=True):
    """The objects that were read from the cluster."""

    sets: tuple[PodCliqueSet, ...] = ()
    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    pods: tuple[Pod, ...] | None = ()
    """None: they were not read, and the ready pods of a clique are those of its status."""
    claims: tuple[ResourceClaim, ...] = ()
    """Only shared claims."""

    def __repr__(self) -> str:
        """Short: `asyncio.run` formats the result of its task, which took 30 ms for 1,000 objects."""
        return f"SetObjects({len(self.sets)} sets)"


def set_views(found: SetObjects, now: float) -> tuple[SetView, ...]:
    """The views of all sets at a time, sorted by namespace and name."""
    parts = _ObjectsByParent(
        pods=None if found.pods is None else _by_clique(found.pods),
        groups=_by_replica(found.groups),
        cliques=_by_replica(found.cliques),
        gangs=_by_replica(found.gangs),
        claims=ClaimIndex(found.claims),
    )
    ordered = sorted(found.sets, key=lambda one: (one.metadata.namespace, one.metadata.name))
    return tuple(_set(workload, parts, now) for workload in ordered)


_ByReplica = dict[NamespacedName, dict[int, list[T]]]
"""Objects by the namespace and name of their set, and by the index of its replica."""


class _ObjectsByParent(Struct, frozen=True):
    """Objects by their parents, which labels name."""

    pods: dict[NamespacedName, list[Pod]] | None
    groups: _ByReplica[PodCliqueScalingGroup]
    cliques: _ByReplica[PodClique]
    gangs: _ByReplica[PodGang]
    claims: ClaimIndex


def _by_clique(pods: Iterable[Pod]) -> dict[NamespacedName, list[Pod]]:
    found: dict[NamespacedName, list[Pod]] = {}
    for pod in sorted(pods, key=lambda one: _natural(one.metadata)):
        place = (pod.metadata.namespace, pod.metadata.labels.get(labels.CLIQUE, ""))
        found.setdefault(place, []).append(pod)
    return found


def _by_replica(parts: Iterable[T]) -> _ByReplica[T]:
    found: _ByReplica[T] = {}
    for part in sorted(parts, key=lambda one: _natural(one.metadata)):
        place = (part.metadata.namespace, part.metadata.labels.get(labels.PART_OF, ""))
        index = _index(part.metadata, labels.SET_REPLICA)
        found.setdefault(place, {}).setdefault(index, []).append(part)
    return found


def _set(workload: PodCliqueSet, parts: _ObjectsByParent, now: float) -> SetView:
    meta, status = workload.metadata, workload.status
    place = (meta.namespace, meta.name)
    members = {
        *parts.groups.get(place, ()),
        *parts.cliques.get(place, ()),
        *parts.gangs.get(place, ()),
    }
    return SetView(
        namespace=meta.namespace,
        name=meta.name,
        available=status.available_replicas,
        replicas=workload.spec.replicas,
        created=meta.creation_timestamp,
        age_seconds=max(0, int(now - timestamp(meta.creation_timestamp)))
        if meta.creation_timestamp
        else None,
        terminating=meta.deletion_timestamp is not None,
        topology=topology_view(workload),
        errors=tuple(error.description for error in status.last_errors),
        members=tuple(_replica(workload, index, parts) for index in sorted(members)),
        claims=parts.claims.of(place),
    )


def _replica(workload: PodCliqueSet, index: int, parts: _ObjectsByParent) -> ReplicaView:
    place = (workload.metadata.namespace, workload.metadata.name)

    def here(found: _ByReplica[T]) -> list[T]:
        return found.get(place, {}).get(index, [])

    cliques = here(parts.cliques)
    return ReplicaView(
        index=index,
        gangs=tuple(_gang(gang) for gang in here(parts.gangs)),
        cliques=tuple(
            _clique(clique, place, parts) for clique in cliques if labels.GROUP not in clique.metadata.labels
        ),
        groups=tuple(_group(group, cliques, place, parts) for group in here(parts.groups)),
        claims=parts.claims.of(place, replica=str(index)),
        fabric_domains=_fabric_domains(workload.status.compute_domains, index),
    )


def _fabric_domains(domains: tuple[ComputeDomainSummary, ...], index: int) -> tuple[FabricDomainView, ...]:
    """The domains of one replica of a set; one that several replicas share is listed at each of them."""
    return tuple(fabric_domain(each) for each in domains if index in each.replica_indices)


def fabric_domain(found: ComputeDomainSummary) -> FabricDomainView:
    """A fabric domain, as the status of its set describes it."""
    return FabricDomainView(
        found.name, found.phase, found.ready_nodes, found.total_nodes, found.clique_ids, found.reason
    )


def _gang(gang: PodGang) -> GangView:
    return GangView(
        gang.metadata.name,
        gang.status.phase,
        sum(len(group.pod_references) for group in gang.spec.pod_groups),
        _waiting_reason(gang.status.conditions),
        placed_domains(gang),
    )


def placed_domains(gang: PodGang) -> dict[str, str]:
    """By the name of the gang, of a group replica or of a clique, the domain that it is in."""
    placement = gang.status.placement
    return {
        unit.name: f"{unit.topology_key.rpartition('/')[2]} {unit.domain}"
        for unit in (placement.units if placement is not None else ())
    }


def _waiting_reason(conditions: Iterable[Condition]) -> str:
    """What the scheduler or the operator says about a gang without nodes; empty if nothing is known."""
    for each in conditions:
        if each.type == ConditionType.SCHEDULED and each.status == "False":
            if each.reason == GangReason.ONE_MEMBER_POD_PER_NODE:
                return each.message
            return each.message.partition(SCHEDULER_MESSAGE_SEPARATOR)[2]
    return ""


def _group(
    group: PodCliqueScalingGroup, cliques: list[PodClique], place: NamespacedName, parts: _ObjectsByParent
) -> GroupView:
    name = group.metadata.name
    own = [clique for clique in cliques if clique.metadata.labels.get(labels.GROUP) == name]
    replicas: dict[int, list[PodClique]] = {}
    for clique in own:
        replicas.setdefault(_index(clique.metadata, labels.GROUP_REPLICA), []).append(clique)
    return GroupView(
        name=name,
        available=group.status.available_replicas,
        replicas=group.spec.replicas,
        needed=group.spec.min_available,
        members=tuple(
            GroupReplicaView(
                index,
                members[0].metadata.labels.get(labels.GANG, ""),
                tuple(_clique(clique, place, parts) for clique in members),
                parts.claims.of(place, group=name, group_replica=str(index)),
            )
            for index, members in sorted(replicas.items())
        ),
        claims=parts.claims.of(place, group=name),
        errors=tuple(error.description for error in group.status.last_errors),
    )


def _clique(clique: PodClique, place: NamespacedName, parts: _ObjectsByParent) -> CliqueView:
    meta, spec = clique.metadata, clique.spec
    pods = [] if parts.pods is None else parts.pods.get((meta.namespace, meta.name), [])
    ready = sum(state.ready(pod) and not state.terminating(pod) for pod in pods)
    return CliqueView(
        name=meta.name,
        ready=clique.status.ready_replicas if parts.pods is None else ready,
        replicas=spec.replicas,
        needed=spec.replicas if spec.min_available is None else spec.min_available,
        gang=meta.labels.get(labels.GANG, ""),
        pods=tuple(map(_pod, pods)),
        claims=parts.claims.of(place, clique=meta.name),
        errors=tuple(error.description for error in clique.status.last_errors),
    )


def _pod(pod: Pod) -> PodView:
    found = pod_state(pod)
    return PodView(pod.metadata.name, found, pod.spec.node_name, pod_reason(pod, found))


def pod_state(pod: Pod) -> str:
    """The state of a pod, as one word."""
    if state.terminating(pod):
        return "terminating"
    if state.ended(pod):
        return pod.status.phase.lower()
    if state.ready(pod):
        return "ready"
    if state.gated(pod):
        return "gated"
    if not state.scheduled(pod):
        return "unscheduled"
    return "failing" if state.errored(pod) else "starting"


def seconds_since(text: str | None, now: float) -> int | None:
    """Whole seconds since a timestamp; 0 if its clock is ahead of ours, None without a timestamp."""
    return max(0, int(now - timestamp(text))) if text else None


def _index(meta: ObjectMeta, label: str) -> int:
    text = meta.labels.get(label, "")
    return int(text) if text.isdecimal() else 0


def _natural(meta: ObjectMeta) -> tuple[int, str]:
    """Sorts by index, so that 10 comes after 9; then by name."""
    return _index(meta, labels.POD_INDEX), meta.name
