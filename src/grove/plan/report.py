"""What a replica tells: the statuses of its cliques, groups and gangs, and what it adds to its set's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.plan.expand import Clique, Group, Shape
from grove.plan.heal import Healing
from grove.plan.model import Draft, Standing
from grove.plan.renew import Renewal
from grove.plan.seats import cramped
from grove.plan.snapshot import Snapshot
from grove.plan.status import CliqueView, clique_status, gang_status, group_status, has_had_nodes
from grove.plan.targets import Kinded, target

Views = Mapping[str, CliqueView]


def drafts(
    snapshot: Snapshot,
    shape: Shape,
    views: Views,
    renewal: Renewal,
    healing: Healing,
    words: Mapping[str, str],
    now: float,
) -> tuple[Draft, ...]:
    """How the statuses should read. `words` are the scheduler's, on gangs that wait for nodes."""
    told = _Told(snapshot, shape, views, renewal, healing, now)
    of_gangs = [
        _draft(
            found,
            found.status,
            gang_status(
                found,
                gang,
                views,
                healing.exhausted.get(gang.name, ""),
                words.get(gang.name, ""),
                now,
                cramped(gang, snapshot.channels),
            ),
        )
        for gang in shape.gangs
        if (found := snapshot.gangs.get(gang.name))
    ]
    return (*told.by_cliques(), *told.by_groups(), *of_gangs)


class _Told:
    """What cliques and groups tell."""

    def __init__(
        self,
        snapshot: Snapshot,
        shape: Shape,
        views: Views,
        renewal: Renewal,
        healing: Healing,
        now: float,
    ) -> None:
        self._snapshot, self._shape, self._views, self._now = snapshot, shape, views, now
        self._renewal, self._healing = renewal, healing
        self._set_name, self._hash = snapshot.workload.metadata.name, shape.generation_hash

    def by_cliques(self) -> Iterator[Draft]:
        for clique in self._shape.cliques:
            if (found := self._snapshot.cliques.get(clique.name)) is not None:
                step = self._renewal.of_cliques.get(clique.name)
                status = clique_status(
                    found,
                    self._views[clique.name],
                    step.progress if step else found.status.update_progress,
                    step is not None and step.overdue,
                    self._set_name,
                    self._hash,
                    self._healing.life(clique),
                    self._now,
                )
                yield _draft(found, found.status, status, self._starts_anew(clique))

    def by_groups(self) -> Iterator[Draft]:
        for group in self._shape.groups:
            if (found := self._snapshot.groups.get(group.name)) is not None:
                step = self._renewal.of_groups[group.name]
                status = group_status(
                    found,
                    group,
                    _by_replica(self._views, group.name),
                    step.progress,
                    step.overdue,
                    self._set_name,
                    self._hash,
                    self._healing.terminated,
                    self._now,
                )
                yield _draft(found, found.status, status, self._all_start_anew(group))

    def _starts_anew(self, clique: Clique) -> bool:
        """Whether a clique was started anew and has not had its nodes since."""
        found, life = self._snapshot.cliques.get(clique.name), self._healing.life(clique)
        if found is None or not life.born:
            return False
        return not has_had_nodes(found.status, self._views[clique.name], life)

    def _all_start_anew(self, group: Group) -> bool:
        """Whether no replica of a group has been whole since it was started anew."""
        replicas = _by_replica(self._views, group.name)
        return all(any(self._starts_anew(view.wanted) for view in views) for views in replicas)


def standing(shape: Shape, views: Views, renewal: Renewal, had_nodes: bool, unlisted: str = "") -> Standing:
    """What the replica contributes to the status of its set. One that still waits for its first nodes has
    nothing to lose, and no update waits for it. `unlisted` is its scheduler, if the configuration has
    forgotten that."""
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
    all_new = updated_groups == len(groups) and updated_cliques == len(alone)
    return Standing(
        available=available,
        updated=available and all_new,
        cliques=len(alone),
        updated_cliques=updated_cliques,
        groups=len(groups),
        updated_groups=updated_groups,
        generation_hash=shape.generation_hash,
        rolled=all_new and (available or not had_nodes) and not renewal.running,
        scheduled_pods=sum(view.count.scheduled for view in views.values()),
        breached=any(view.breached for view in alone)
        or any(_short(group, replicas) for group, replicas in groups),
        outdated=any(view.count.updated < view.count.replicas for view in views.values()),
        rolling=renewal.running,
        stuck=renewal.stuck,
        unlisted=unlisted,
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


def _draft(found: Kinded, current: object, desired: object, taken_down: bool = False) -> Draft:
    meta = found.metadata
    return Draft(target(found), current, desired, meta.generation, meta.resource_version, taken_down)
