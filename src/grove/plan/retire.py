"""What is too much goes: replicas beyond the set's count, group replicas beyond the group's.

A count is confirmed with the object it was read from before anything is deleted because of it: whoever acts
on an old view of that count is stopped there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.intents import Delete, Intent
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.expand import Shape
from grove.plan.snapshot import Snapshot
from grove.plan.targets import Kinded, confirm, foreign_target, target


def retire_replica(snapshot: Snapshot) -> tuple[Intent, ...]:
    """Everything of a replica that the set no longer has."""
    parts: list[Kinded] = [*snapshot.cliques.values(), *snapshot.groups.values(), *snapshot.gangs.values()]
    pods = _pods_of(snapshot, snapshot.cliques.values())
    if not parts and not pods and snapshot.service is None:
        return ()
    fence = confirm(snapshot.workload)
    after = (fence.id,)
    intents: list[Intent] = [fence, *_deletes(pods, after)]
    intents += [Delete(target(part), uid=part.metadata.uid, after=after) for part in parts]
    if snapshot.service is not None:
        service = foreign_target("v1", "Service", snapshot.service)
        intents.append(Delete(service, uid=snapshot.service.metadata.uid, after=after))
    return tuple(intents)


def retire_surplus(snapshot: Snapshot, shape: Shape, planned: Sequence[Intent]) -> list[Intent]:
    """Cliques, groups and gangs that the shape of the replica no longer has."""
    cliques = _surplus(snapshot.cliques, {clique.name for clique in shape.cliques})
    groups = _surplus(snapshot.groups, {group.name for group in shape.groups})
    gangs = _surplus(snapshot.gangs, {gang.name for gang in shape.gangs})
    parts: list[Kinded] = [*gangs, *cliques, *groups]
    if not parts:
        return []
    # The counts that say so: those of the groups, and for the rest the set's own template.
    counts: list[Kinded] = list(snapshot.groups.values())
    if not counts or groups or any(labels.GROUP not in clique.metadata.labels for clique in cliques):
        counts.append(snapshot.workload)
    fences = list(map(confirm, counts))
    after = tuple(fence.id for fence in fences)
    written = {intent.id for intent in planned}  # a planned change confirms as well
    intents: list[Intent] = [fence for fence in fences if fence.id not in written]
    intents += _deletes(_pods_of(snapshot, cliques), after)
    return intents + [Delete(target(part), uid=part.metadata.uid, after=after) for part in parts]


T = TypeVar("T", bound=Kinded)


def _surplus(found: Mapping[str, T], wanted: set[str]) -> list[T]:
    return [part for name, part in found.items() if name not in wanted]


def _pods_of(snapshot: Snapshot, cliques: Iterable[PodClique]) -> list[Pod]:
    uids = {clique.metadata.uid for clique in cliques}
    return [pod for pod in snapshot.pods if state.controller_uid(pod.metadata) in uids]


def _deletes(pods: Iterable[Pod], after: tuple[str, ...]) -> list[Delete]:
    return [
        Delete(foreign_target("v1", "Pod", pod), uid=pod.metadata.uid, after=after)
        for pod in pods
        if not state.terminating(pod)
    ]
