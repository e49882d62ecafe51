"""Plans scale-in: deletes set replicas above spec.replicas, and cliques, groups and gangs that are not in the
layout.

    counts confirmed -> gangs rewritten or deleted -> pods but the last -> cliques, groups -> the last pod
                     -> claims, the Service deleted

A count is confirmed on the object that it was read from before anything is deleted because of it: an operator
that acts on a stale count fails there. Pods are deleted after no gang names them, as everywhere.

A client that counts cliques, groups or gangs when the last pod is gone must not find more than there are
replicas. So one pod of all of these replicas is deleted after their cliques, groups and gangs; where only a
part of a replica is deleted, one pod of each clique is. All other objects follow when the pods of all of
these replicas are gone: pods hold GPUs, and until then every request would slow down their termination.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from grove import timing
from grove.api.intents import Create, Delete, Target
from grove.api.naming import labels, names
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.plan.autoscaling import delete_autoscaler
from grove.plan.desired.expand import ReplicaLayout
from grove.plan.members import pod_state
from grove.plan.model import Plan
from grove.plan.ownership.ownership import PodsByClique, is_owned_pod, keep_owned
from grove.plan.ownership.upstream_adoption import remove_legacy_finalizers
from grove.plan.resource_claims import claims_of, claims_of_replica, delete_claim
from grove.plan.snapshot import Snapshot
from grove.plan.timestamps import timestamp
from grove.plan.writes.builders import GroveObject, delete, delete_of_kind, delete_pod, reference
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.events import deleted, pod_deleted

T = TypeVar("T", bound=GroveObject)


def plan_scale_in(snapshots: Sequence[Snapshot], now: float) -> Plan:
    """Plans the replicas above spec.replicas: their gangs and pods, then all other objects."""
    replicas, terminating = list(map(keep_owned, snapshots)), list[Pod]()
    writes = WriteCollector(chain.from_iterable(map(remove_legacy_finalizers, snapshots)))
    pods = list(map(_pods_to_delete, snapshots, replicas))
    last = _take_last_pod(replicas, pods)
    for snapshot, own in zip(replicas, pods, strict=True):
        _delete_pods_and_owners(snapshot, own, writes)
        terminating += (
            pod for pod in snapshot.pods if pod_state.terminating(pod) and _belongs_to_replica(pod, snapshot)
        )
    if last is not None:
        pod, clique = last
        writes.add(delete_pod(pod, tuple(write.id for write in writes.intents()), reference(clique)))
    if writes.intents():
        return Plan(writes.intents(), events=tuple(writes.events))
    waits = deletes_delayed_until(terminating, now)
    if waits is None:
        for snapshot in replicas:
            _delete_remaining(snapshot, writes)
    return Plan(writes.intents(), requeue_at=waits)


def _take_last_pod(replicas: Sequence[Snapshot], pods: Sequence[list[Pod]]) -> tuple[Pod, PodClique] | None:
    """Removes from `pods` the one that is deleted after everything else, and returns it with its clique. A
    pod whose clique is deleted already never waits: another object whose delete fails must not keep it."""
    for snapshot, own in zip(reversed(replicas), reversed(pods), strict=True):
        if not _has_deletable_owners(snapshot):
            continue
        cliques = {clique.metadata.uid: clique for clique in snapshot.cliques.values()}
        for index in reversed(range(len(own))):
            if clique := cliques.get(pod_state.controller_uid(own[index].metadata)):
                return own.pop(index), clique
    return None


def _pods_to_delete(found: Snapshot, owned: Snapshot) -> list[Pod]:
    """The pods of the replica's cliques, orphans, and pods whose clique is already deleted."""
    known = {clique.metadata.uid for clique in found.cliques.values()}
    cliques = {clique.metadata.uid for clique in owned.cliques.values()}
    return [
        pod
        for pod in owned.pods
        if not pod_state.terminating(pod)
        and (
            pod_state.controller_uid(pod.metadata) in cliques
            or (pod_state.controller_uid(pod.metadata) not in known and _belongs_to_replica(pod, owned))
        )
    ]


def _delete_pods_and_owners(snapshot: Snapshot, pods: Sequence[Pod], writes: WriteCollector) -> None:
    """Deletes gangs, then pods, then autoscalers, cliques and groups. One event names the base gangs of all
    deleted replicas: an event for each pod would be an API call for each pod, while other workloads wait for
    the GPUs."""
    owners = _has_deletable_owners(snapshot)
    if not (pods or snapshot.gangs or owners):
        return
    fence = (writes.confirm(snapshot.workload),)
    after = tuple(writes.add(delete(gang, fence)) for gang in snapshot.gangs.values()) or fence
    if base := snapshot.gangs.get(names.base_gang(snapshot.workload.metadata.name, snapshot.index)):
        writes.events.append(deleted(reference(snapshot.workload), delete(base), together=True))
    references = {clique.metadata.uid: reference(clique) for clique in snapshot.cliques.values()}
    of_pods: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pods:
        uid = pod_state.controller_uid(pod.metadata)
        of_pods[uid].append(writes.add(delete_pod(pod, after, references.get(uid))))
    if owners:
        _delete_owners(snapshot, of_pods, after, writes)


def _delete_owners(
    snapshot: Snapshot, pods: Mapping[str, Sequence[str]], after: tuple[str, ...], writes: WriteCollector
) -> None:
    """Deletes autoscalers, cliques after their `pods`, and groups. Autoscalers first: without their scale
    target they report errors. A clique after its pods: the garbage collector reads and deletes each pod that
    is not terminating when its clique is gone."""
    autoscalers = tuple(
        writes.add(delete_autoscaler(found, after)) for found in snapshot.autoscalers.values()
    )
    of_groups: defaultdict[str, list[str]] = defaultdict(list)
    for clique in snapshot.cliques.values():
        deletion = writes.add(delete(clique, (*(pods.get(clique.metadata.uid) or after), *autoscalers)))
        of_groups[clique.metadata.labels.get(labels.GROUP, "")].append(deletion)
    for name, group in snapshot.groups.items():
        writes.add(delete(group, tuple(of_groups.get(name, ())) or (*after, *autoscalers)))


def _has_deletable_owners(snapshot: Snapshot) -> bool:
    """Whether cliques or groups can be deleted before the pods are gone. If the replica has claims they stay:
    the claims are found by them."""
    return bool(snapshot.cliques or snapshot.groups) and not any(claims_of_replica(snapshot.shared))


def deletion_requested(snapshot: Snapshot) -> bool:
    """Whether everything of a replica that is deleted without waiting for its pods to be gone has been
    deleted."""
    pods_terminating = all(map(pod_state.terminating, snapshot.pods))
    return pods_terminating and not snapshot.gangs and not _has_deletable_owners(snapshot)


def deletes_delayed_until(terminating: Iterable[Pod], now: float) -> float | None:
    """Until when terminating pods delay the other deletes; None if they do not."""
    last = max(map(_wait_until, terminating), default=0.0)
    return last if last > now else None


def _wait_until(pod: Pod) -> float:
    meta = pod.metadata
    return (
        timestamp(meta.deletion_timestamp)
        - (meta.deletion_grace_period_seconds or 0)
        + timing.SCALE_IN_POD_WAIT
    )


def has_objects(snapshot: Snapshot) -> bool:
    """Whether any object of a deleted replica is left."""
    owned = keep_owned(snapshot)
    parts = (owned.cliques, owned.groups, owned.gangs, owned.service, owned.autoscalers)
    return any(parts) or any(claims_of_replica(owned.shared)) or has_pods(snapshot)


def has_pods(snapshot: Snapshot) -> bool:
    """Whether the replica has pods, terminating or not; pods with another owner do not count."""
    return any(_belongs_to_replica(pod, snapshot) for pod in snapshot.pods)


def _belongs_to_replica(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod belongs to a clique of this replica, which may already be deleted, or is an orphan of
    one."""
    base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return owner.kind == PodClique.KIND.name and owner.name.startswith(f"{base}-")
    return is_owned_pod(pod, frozenset())


def _delete_remaining(snapshot: Snapshot, writes: WriteCollector) -> None:
    parts: list[GroveObject] = [*snapshot.cliques.values(), *snapshot.groups.values()]
    service, autoscalers = snapshot.service, snapshot.autoscalers.values()
    claims = list(claims_of_replica(snapshot.shared))
    if not (parts or service or autoscalers or claims):
        return
    fence = (writes.confirm(snapshot.workload),)
    prior_deletes = tuple(writes.add(delete_claim(claim, fence)) for claim in claims)
    writes.add_all(delete(part, prior_deletes or fence) for part in parts)
    writes.add_all(delete_autoscaler(found, fence) for found in autoscalers)
    if service is not None:
        writes.add(delete_of_kind("v1", "Service", service, fence))


def delete_surplus(
    snapshot: Snapshot, layout: ReplicaLayout, pods_by_clique: PodsByClique, writes: WriteCollector
) -> None:
    """Deletes cliques, groups and gangs that are not in the layout of the replica. Called after the other
    gangs have been planned: those that name such a clique drop it first. A clique that is deleted with its
    gang has no event of its own, and its pods have none."""
    cliques = _surplus(snapshot.cliques, {clique.name for clique in layout.cliques})
    groups = _surplus(snapshot.groups, {group.name for group in layout.groups})
    gangs = _surplus(snapshot.gangs, {gang.name for gang in layout.gangs})
    if not (cliques or groups or gangs):
        return
    counts = chain.from_iterable(count_owners(snapshot, clique.metadata.name) for clique in cliques)
    if groups or gangs:
        counts = chain(counts, _all_count_owners(snapshot))
    # A group that is created in this plan may exist unseen, with other replicas than its template has.
    unseen = writes.planned_ids(_create_id(snapshot, group.name) for group in layout.groups)
    fences = (*dict.fromkeys(map(writes.confirm, counts)), *unseen)
    deletes = [delete(gang, fences) for gang in gangs]
    writes.add_all(deletes)
    in_deleted_gangs = {group.name for gang in gangs for group in gang.spec.pod_groups}
    for clique in cliques:
        *of_pods, of_clique = _delete_clique(snapshot, clique, pods_by_clique, fences, writes)
        if clique.metadata.name not in in_deleted_gangs:
            writes.events += map(pod_deleted, of_pods)
            deletes.append(of_clique)
    deletes += (
        delete(group, _delete_claims(snapshot, labels.GROUP, group, fences, writes) or fences)
        for group in groups
    )
    writes.add_all(deletes)
    writes.events += (deleted(reference(snapshot.workload), deletion) for deletion in deletes)


def _delete_clique(
    snapshot: Snapshot,
    clique: PodClique,
    pods_by_clique: PodsByClique,
    fences: tuple[str, ...],
    writes: WriteCollector,
) -> list[Delete]:
    """The deletes of a clique's pods, and then of the clique."""
    after, regarding = fences + _gang_writes_naming(snapshot, clique.metadata.name, writes), reference(clique)
    staying = [pod for pod in _pods_of([clique], pods_by_clique) if not pod_state.terminating(pod)]
    if any(claims_of(snapshot.shared, labels.CLIQUE, clique.metadata.name)):
        pods = [delete_pod(pod, after, regarding) for pod in staying]
        then = after + tuple(map(writes.add, pods))
        of_clique = delete(clique, _delete_claims(snapshot, labels.CLIQUE, clique, then, writes))
    else:  # before the last pod, for clients that count cliques when the pods are gone
        of_clique = delete(clique, after)
        pods = [delete_pod(pod, after, regarding) for pod in staying[:-1]]
        last = [delete_pod(pod, (*after, of_clique.id), regarding) for pod in staying[-1:]]
        writes.add_all((*pods, of_clique, *last))
        pods += last
    writes.add(of_clique)
    return [*pods, of_clique]


def _create_id(snapshot: Snapshot, group: str) -> str:
    kind, namespace = PodCliqueScalingGroup.KIND, snapshot.workload.metadata.namespace
    return Create(Target(kind.api_version, kind.name, group, namespace), {}).id


def _delete_claims(
    snapshot: Snapshot, label: str, owner: GroveObject, after: tuple[str, ...], writes: WriteCollector
) -> tuple[str, ...]:
    """The deletes of the claims of a clique or group that is deleted."""
    claims = claims_of(snapshot.shared, label, owner.metadata.name)
    return tuple(writes.add(delete_claim(claim, after)) for claim in claims)


def count_owners(snapshot: Snapshot, clique: str) -> tuple[GroveObject, ...]:
    """The objects whose counts say that the clique is surplus: its group; if that is unknown, all groups and
    the set."""
    found = snapshot.cliques.get(clique)
    group = snapshot.groups.get(found.metadata.labels.get(labels.GROUP, "")) if found else None
    return (group,) if group is not None else _all_count_owners(snapshot)


def _all_count_owners(snapshot: Snapshot) -> tuple[GroveObject, ...]:
    return (*snapshot.groups.values(), snapshot.workload)


def _gang_writes_naming(snapshot: Snapshot, clique: str, writes: WriteCollector) -> tuple[str, ...]:
    """The writes that remove the pods of a clique from gangs."""
    return tuple(
        write
        for gang in snapshot.gangs.values()
        if any(group.name == clique for group in gang.spec.pod_groups)
        for write in writes.writes_for(gang)
    )


def _surplus(found: Mapping[str, T], wanted: set[str]) -> list[T]:
    return [part for name, part in found.items() if name not in wanted]


def _pods_of(cliques: Iterable[PodClique], pods_by_clique: PodsByClique) -> list[Pod]:
    return [pod for clique in cliques for pod in pods_by_clique.of(clique.metadata.name, clique.metadata.uid)]
