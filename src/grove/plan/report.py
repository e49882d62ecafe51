"""What a replica tells: the statuses of its cliques, groups and gangs, and what it adds to its set's."""

from __future__ import annotations

from collections.abc import Mapping

from grove.plan.expand import Shape
from grove.plan.model import Draft, Standing
from grove.plan.snapshot import Snapshot
from grove.plan.status import CliqueView, clique_status, gang_status, group_status
from grove.plan.targets import Kinded, target

Views = Mapping[str, CliqueView]


def drafts(snapshot: Snapshot, shape: Shape, views: Views, now: float) -> tuple[Draft, ...]:
    """How the statuses should read."""
    set_name, hash_ = snapshot.workload.metadata.name, shape.generation_hash
    found: list[Draft] = []
    for clique in shape.cliques:
        if known := snapshot.cliques.get(clique.name):
            status = clique_status(known, views[clique.name], set_name, hash_, now)
            found.append(_draft(known, known.status, status))
    for group in shape.groups:
        if known_group := snapshot.groups.get(group.name):
            replicas = _by_replica(views, group.name)
            of_group = group_status(known_group, group, replicas, set_name, hash_, now)
            found.append(_draft(known_group, known_group.status, of_group))
    found += [
        _draft(known_gang, known_gang.status, gang_status(known_gang, gang, views, now))
        for gang in shape.gangs
        if (known_gang := snapshot.gangs.get(gang.name))
    ]
    return tuple(found)


def standing(shape: Shape, views: Views) -> Standing:
    """What the replica contributes to the status of its set."""
    alone = [view for view in views.values() if view.wanted.group is None]
    groups = [(group, _by_replica(views, group.name)) for group in shape.groups]
    available = all(view.available for view in alone) and all(
        group.replicas == 0
        or sum(all(view.scheduled and view.available for view in views) for views in replicas)
        >= group.min_available
        for group, replicas in groups
    )
    updated_groups = sum(all(view.updated for views in replicas for view in views) for _, replicas in groups)
    updated_cliques = sum(view.updated for view in alone)
    return Standing(
        available=available,
        updated=available and updated_groups == len(groups) and updated_cliques == len(alone),
        cliques=len(alone),
        updated_cliques=updated_cliques,
        groups=len(groups),
        updated_groups=updated_groups,
    )


def _by_replica(views: Views, group: str) -> list[list[CliqueView]]:
    replicas: dict[int, list[CliqueView]] = {}
    for view in views.values():
        if view.wanted.group is not None and view.wanted.group.name == group:
            replicas.setdefault(view.wanted.group_replica, []).append(view)
    return list(replicas.values())


def _draft(found: Kinded, current: object, desired: object) -> Draft:
    return Draft(target(found), current, desired, found.metadata.generation)
