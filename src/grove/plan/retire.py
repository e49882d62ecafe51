"""What is too much goes: replicas beyond the set's count, group replicas beyond the group's.

    counts confirmed -> gangs rewritten or deleted -> pods, claims, cliques, groups, the Service deleted

A count is confirmed with the object it was read from before anything is deleted because of it: whoever acts
on an old view of that count is stopped there. Pods go when no gang names them any more, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypeVar

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.intents import Delete
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.autoscalers import delete_autoscaler
from grove.plan.claims import claims_of, claims_of_replica, delete_claim
from grove.plan.expand import Shape
from grove.plan.ours import Households
from grove.plan.snapshot import Snapshot
from grove.plan.targets import Kinded, delete, delete_pod, foreign_target
from grove.plan.writes import Writes

T = TypeVar("T", bound=Kinded)


def retire_replica(snapshot: Snapshot, households: Households, writes: Writes) -> None:
    """Everything of a replica that the set no longer has."""
    parts: list[Kinded] = [*snapshot.cliques.values(), *snapshot.groups.values()]
    pods = _pods_of(snapshot.cliques.values(), households)
    pods |= _leavable(chain.from_iterable(households.orphans.values()))
    gangs, service, autoscalers = snapshot.gangs.values(), snapshot.service, snapshot.autoscalers.values()
    claims = list(claims_of_replica(snapshot.shared))
    if not (parts or pods or gangs or service or autoscalers or claims):
        return
    fence = (writes.confirm(snapshot.workload),)
    after = tuple(writes.add(delete(gang, fence)) for gang in gangs) or fence
    # Pods hold GPUs, the rest holds nothing: what is scaled in should be free for others first.
    then = tuple(writes.add(delete_pod(pod, after)) for pod in pods.values()) or after
    freed = tuple(writes.add(delete_claim(claim, then)) for claim in claims)
    writes.add_all(delete(part, freed or then) for part in parts)
    writes.add_all(delete_autoscaler(found, then) for found in autoscalers)
    if service is not None:
        writes.add(Delete(foreign_target("v1", "Service", service), uid=service.metadata.uid, after=then))


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
        pods = (delete_pod(pod, after) for pod in _pods_of([clique], households).values())
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


def _pods_of(cliques: Iterable[PodClique], households: Households) -> dict[str, Pod]:
    return _leavable(
        chain.from_iterable(households.of(clique.metadata.name, clique.metadata.uid) for clique in cliques)
    )


def _leavable(pods: Iterable[Pod]) -> dict[str, Pod]:
    return {pod.metadata.name: pod for pod in pods if not state.terminating(pod)}
