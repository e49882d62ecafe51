"""What a replica tells: the statuses of its cliques, groups and gangs, and what it adds to its set's."""

from __future__ import annotations

from collections.abc import Mapping

from grove.plan.expand import Group, Shape
from grove.plan.heal import Healing
from grove.plan.model import Draft, Standing
from grove.plan.renew import Renewal
from grove.plan.snapshot import Snapshot
from grove.plan.status import CliqueView, clique_status, gang_status, group_status
from grove.plan.targets import Kinded, target

Views = Mapping[str, CliqueView]


def drafts(
    snapshot: Snapshot, shape: Shape, views: Views, renewal: Renewal, healing: Healing, now: float
) -> tuple[Draft, ...]:
    """How the statuses should read."""
    set_name, hash_ = snapshot.workload.metadata.name, shape.generation_hash
    found: list[Draft] = []
    for clique in shape.cliques:
        if known := snapshot.cliques.get(clique.name):
            step = renewal.of_cliques.get(clique.name)
            progress = step.progress if step else known.status.update_progress
            overdue = step is not None and step.overdue
            status = clique_status(
                known, views[clique.name], progress, overdue, set_name, hash_, healing.born(clique), now
            )
            found.append(_draft(known, known.status, status))
    for group in shape.groups:
        if known_group := snapshot.groups.get(group.name):
            replicas = _by_replica(views, group.name)
            step_of_group = renewal.of_groups[group.name]
            of_group = group_status(
                known_group,
                group,
                replicas,
                step_of_group.progress,
                step_of_group.overdue,
                set_name,
                hash_,
                healing.terminated,
                now,
            )
            found.append(_draft(known_group, known_group.status, of_group))
    found += [
        _draft(
            known_gang,
            known_gang.status,
            gang_status(known_gang, gang, views, healing.exhausted.get(gang.name, ""), now),
        )
        for gang in shape.gangs
        if (known_gang := snapshot.gangs.get(gang.name))
    ]
    return tuple(found)


def standing(shape: Shape, views: Views, renewal: Renewal) -> Standing:
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
    updated = available and updated_groups == len(groups) and updated_cliques == len(alone)
    return Standing(
        available=available,
        updated=updated,
        cliques=len(alone),
        updated_cliques=updated_cliques,
        groups=len(groups),
        updated_groups=updated_groups,
        generation_hash=shape.generation_hash,
        rolled=updated and not renewal.running,
        scheduled_pods=sum(view.count.scheduled for view in views.values()),
        breached=any(view.breached for view in alone)
        or any(_short(group, replicas) for group, replicas in groups),
    )


def _short(group: Group, replicas: list[list[CliqueView]]) -> bool:
    sound = sum(not any(view.breached for view in views) for views in replicas)
    return group.replicas > 0 and sound < group.min_available


def _by_replica(views: Views, group: str) -> list[list[CliqueView]]:
    replicas: dict[int, list[CliqueView]] = {}
    for view in views.values():
        if view.wanted.group is not None and view.wanted.group.name == group:
            replicas.setdefault(view.wanted.group_replica, []).append(view)
    return list(replicas.values())


def _draft(found: Kinded, current: object, desired: object) -> Draft:
    return Draft(target(found), current, desired, found.metadata.generation)
