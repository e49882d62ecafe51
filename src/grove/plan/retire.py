"""What is too much goes: replicas beyond the set's count, group replicas beyond the group's.

    counts confirmed -> gangs rewritten or deleted -> pods -> cliques, groups -> claims, the Service deleted

A count is confirmed with the object it was read from before anything is deleted because of it: whoever acts
on an old view of that count is stopped there. Pods go when no gang names them any more, as everywhere.

Pods hold GPUs, the rest holds nothing. So what else a replica of the set has goes when the pods of all that
go with it are gone: until then, every request would keep the cluster from letting pods go. Its cliques go as
soon as their pods have been told to, unless many replicas go at once: who counts cliques when the last pod is
gone must not find more of them than there are replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from grove.api import labels, names
from grove.api.cliques import PodClique
from grove.api.intents import Delete
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.autoscalers import delete_autoscaler
from grove.plan.claims import claims_of, claims_of_replica, delete_claim
from grove.plan.expand import Shape
from grove.plan.model import Plan
from grove.plan.moments import moment
from grove.plan.ours import Households, is_our_pod, keep_ours
from grove.plan.snapshot import Snapshot
from grove.plan.takeover import unburdened
from grove.plan.targets import Kinded, delete, delete_pod, foreign_target
from grove.plan.writes import Writes

T = TypeVar("T", bound=Kinded)

PATIENCE = 10.0
"""For how many seconds pods that were told to go hold up the rest. Some have an hour to end, and those of a
lost node never do."""

MANY = 128
"""If more replicas go at once, only their pods go at first: 250 cliques cost 500 pods three seconds."""


def retire(snapshots: Sequence[Snapshot], now: float) -> Plan:
    """Replicas that the set no longer has: their gangs and pods, then all else that they have."""
    leaving, together = list(map(keep_ours, snapshots)), len(snapshots) <= MANY
    writes, going = Writes(chain.from_iterable(map(unburdened, snapshots))), list[Pod]()
    for snapshot in leaving:
        households = Households(snapshot.pods)
        pods = _pods_of(snapshot.cliques.values(), households)
        pods += chain.from_iterable(households.orphans.values())
        _retire_pods(snapshot, pods, writes, owners=together and _have_owners_to_go(snapshot))
        going += (pod for pod in snapshot.pods if state.terminating(pod) and _is_part(pod, snapshot))
    if writes.intents():
        return Plan(writes.intents())
    waits = awaited(going, now)
    if waits is None:
        for snapshot in leaving:
            _retire_rest(snapshot, writes)
    return Plan(writes.intents(), wake_at=waits)


def _retire_pods(snapshot: Snapshot, pods: Iterable[Pod], writes: Writes, *, owners: bool) -> None:
    """Gangs, pods, and whoever owned these."""
    staying = {pod.metadata.name: pod for pod in pods if not state.terminating(pod)}
    if not (staying or snapshot.gangs or owners):
        return
    fence = (writes.confirm(snapshot.workload),)
    after = tuple(writes.add(delete(gang, fence)) for gang in snapshot.gangs.values()) or fence
    told: dict[str, list[str]] = {}
    for pod in staying.values():
        told.setdefault(state.controller_uid(pod.metadata), []).append(writes.add(delete_pod(pod, after)))
    if owners:
        # What scales them would complain of their being gone.
        freed = tuple(writes.add(delete_autoscaler(found, fence)) for found in snapshot.autoscalers.values())
        for clique in snapshot.cliques.values():
            writes.add(delete(clique, (*(told.get(clique.metadata.uid) or after), *freed)))
        gone = writes.planned(delete(clique).id for clique in snapshot.cliques.values())
        writes.add_all(delete(group, gone or (*after, *freed)) for group in snapshot.groups.values())


def _have_owners_to_go(snapshot: Snapshot) -> bool:
    """Who owns claims as well stays with them: they are found by it."""
    return bool(snapshot.cliques or snapshot.groups) and not any(claims_of_replica(snapshot.shared))


def is_told(snapshot: Snapshot, leaving: int) -> bool:
    """Whether all of a replica, one of so many, has been told to go that goes before its pods are gone."""
    pods_told = all(map(state.terminating, snapshot.pods))
    return pods_told and not snapshot.gangs and not (leaving <= MANY and _have_owners_to_go(snapshot))


def awaited(going: Iterable[Pod], now: float) -> float | None:
    """Until when pods that were told to go are waited for; None if that is not worth while."""
    last = max(map(_patience, going), default=0.0)
    return last if last > now else None


def _patience(pod: Pod) -> float:
    meta = pod.metadata
    return moment(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) + PATIENCE


def has_anything(snapshot: Snapshot) -> bool:
    """Whether anything is left of a replica that goes."""
    ours = keep_ours(snapshot)
    parts = (ours.cliques, ours.groups, ours.gangs, ours.service, ours.autoscalers)
    return any(parts) or any(claims_of_replica(ours.shared)) or has_pods(snapshot)


def has_pods(snapshot: Snapshot) -> bool:
    """Whether pods of the replica are there, on their way out or not; those of others do not count."""
    return any(_is_part(pod, snapshot) for pod in snapshot.pods)


def _is_part(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod is of a clique of this replica, which may have gone before it, or was left by one."""
    base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return owner.kind == PodClique.KIND.name and owner.name.startswith(f"{base}-")
    return is_our_pod(pod, frozenset())


def _retire_rest(snapshot: Snapshot, writes: Writes) -> None:
    parts: list[Kinded] = [*snapshot.cliques.values(), *snapshot.groups.values()]
    service, autoscalers = snapshot.service, snapshot.autoscalers.values()
    claims = list(claims_of_replica(snapshot.shared))
    if not (parts or service or autoscalers or claims):
        return
    fence = (writes.confirm(snapshot.workload),)
    freed = tuple(writes.add(delete_claim(claim, fence)) for claim in claims)
    writes.add_all(delete(part, freed or fence) for part in parts)
    writes.add_all(delete_autoscaler(found, fence) for found in autoscalers)
    if service is not None:
        writes.add(Delete(foreign_target("v1", "Service", service), uid=service.metadata.uid, after=fence))


def retire_surplus(snapshot: Snapshot, shape: Shape, households: Households, writes: Writes) -> None:
    """Cliques, groups and gangs that the shape of the replica no longer has. The gangs that stay have been
    planned: where they name such a clique, they are to forget it first."""
    cliques = _surplus(snapshot.cliques, {clique.name for clique in shape.cliques})
    groups = _surplus(snapshot.groups, {group.name for group in shape.groups})
    gangs = _surplus(snapshot.gangs, {gang.name for gang in shape.gangs})
    if not (cliques or groups or gangs):
        return
    counts = chain.from_iterable(counts_behind(snapshot, clique.metadata.name) for clique in cliques)
    if groups or gangs:
        counts = chain(counts, _all_counts(snapshot))
    fences = tuple(dict.fromkeys(map(writes.confirm, counts)))
    for gang in gangs:
        writes.add(delete(gang, fences))
    for clique in cliques:
        after = fences + _forgotten_by(snapshot, clique.metadata.name, writes)
        staying = (pod for pod in _pods_of([clique], households) if not state.terminating(pod))
        pods = (delete_pod(pod, after) for pod in staying)
        then = after + tuple(map(writes.add, pods))
        writes.add(delete(clique, _freed(snapshot, labels.CLIQUE, clique, then, writes) or after))
    for group in groups:
        writes.add(delete(group, _freed(snapshot, labels.GROUP, group, fences, writes) or fences))


def _freed(
    snapshot: Snapshot, label: str, owner: Kinded, after: tuple[str, ...], writes: Writes
) -> tuple[str, ...]:
    """The writes that remove the claims of a clique or group which goes."""
    claims = claims_of(snapshot.shared, label, owner.metadata.name)
    return tuple(writes.add(delete_claim(claim, after)) for claim in claims)


def counts_behind(snapshot: Snapshot, clique: str) -> tuple[Kinded, ...]:
    """Whose counts say that there is no such clique: its group's; if that is not known, all there are."""
    found = snapshot.cliques.get(clique)
    group = snapshot.groups.get(found.metadata.labels.get(labels.GROUP, "")) if found else None
    return (group,) if group is not None else _all_counts(snapshot)


def _all_counts(snapshot: Snapshot) -> tuple[Kinded, ...]:
    return (*snapshot.groups.values(), snapshot.workload)


def _forgotten_by(snapshot: Snapshot, clique: str, writes: Writes) -> tuple[str, ...]:
    """The writes by which gangs stop naming the pods of a clique."""
    return tuple(
        write
        for gang in snapshot.gangs.values()
        if any(group.name == clique for group in gang.spec.pod_groups)
        for write in writes.about(gang)
    )


def _surplus(found: Mapping[str, T], wanted: set[str]) -> list[T]:
    return [part for name, part in found.items() if name not in wanted]


def _pods_of(cliques: Iterable[PodClique], households: Households) -> list[Pod]:
    return [pod for clique in cliques for pod in households.of(clique.metadata.name, clique.metadata.uid)]
