"""Computes the health of cliques and groups from the counts of their pods: the one place that decides whether
they are below `minAvailable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from grove.plan.desired.expand import Clique, Group
from grove.plan.members.counts import PodCounts


class CliqueHealth:
    """The health of one clique, from the counts of its pods."""

    def __init__(self, wanted: Clique, count: PodCounts, was_updated: bool = False) -> None:
        self.wanted, self.count = wanted, count
        self._was_updated = was_updated

    @property
    def needed(self) -> int:
        """How many pods are required; 0 if the clique is scaled to 0."""
        return self.wanted.min_available if self.wanted.replicas else 0

    @property
    def scheduled(self) -> bool:
        """Enough pods have a node."""
        return self.count.scheduled >= self.needed

    @property
    def available(self) -> bool:
        return self.count.ready >= self.needed

    @property
    def ready(self) -> bool:
        """Every pod is there and ready."""
        return self.count.ready >= self.wanted.replicas

    @property
    def complete(self) -> bool:
        return self.count.replicas == self.wanted.replicas

    @property
    def updated(self) -> bool:
        """Every pod has the latest template."""
        return self.complete and self.count.updated == self.count.replicas

    @property
    def current(self) -> bool:
        """The same; once it was so, pods that were deleted since do not make it outdated."""
        still_updated = self._was_updated and self.count.updated == self.count.replicas >= self.needed
        return still_updated or self.updated

    @property
    def breached(self) -> bool:
        """Below `minAvailable`."""
        return self.count.scheduled - self.count.unhealthy < self.needed


class GroupHealth:
    """The health of one scaling group, from the cliques of each of its replicas."""

    def __init__(self, wanted: Group, replicas: Iterable[Sequence[CliqueHealth]]) -> None:
        self.wanted, self.replicas = wanted, tuple(replicas)

    @property
    def needed(self) -> int:
        """How many replicas are required; 0 if the group is scaled to 0."""
        return self.wanted.min_available if self.wanted.replicas else 0

    @property
    def healthy(self) -> int:
        """How many replicas have no clique below `minAvailable`."""
        return sum(not any(clique.breached for clique in cliques) for cliques in self.replicas)

    @property
    def breached(self) -> bool:
        """Below `minAvailable`."""
        return self.healthy < self.needed

    @property
    def scheduled_replicas(self) -> int:
        return sum(all(clique.scheduled for clique in cliques) for cliques in self.replicas)

    @property
    def available_replicas(self) -> int:
        return sum(map(_is_available, self.replicas))

    @property
    def updated_replicas(self) -> int:
        """How many replicas are available and have the latest template."""
        return sum(_is_available(cliques) and _is_current(cliques) for cliques in self.replicas)

    @property
    def available(self) -> bool:
        return self.available_replicas >= self.needed

    @property
    def updated(self) -> bool:
        """Every pod has the latest template."""
        return all(clique.updated for cliques in self.replicas for clique in cliques)

    @property
    def current(self) -> bool:
        """The same; once it was so, pods that were deleted since do not make it outdated."""
        return all(map(_is_current, self.replicas))


def _is_available(cliques: Sequence[CliqueHealth]) -> bool:
    return all(clique.scheduled and clique.available for clique in cliques)


def _is_current(cliques: Sequence[CliqueHealth]) -> bool:
    return all(clique.current for clique in cliques)


class _OfClique(Protocol):
    """The state or the health of a clique."""

    @property
    def wanted(self) -> Clique: ...


C = TypeVar("C", bound=_OfClique)


def by_replica(cliques: Iterable[C], group: str) -> dict[int, list[C]]:
    """The cliques of a group, by group replica."""
    replicas: dict[int, list[C]] = {}
    for clique in cliques:
        if clique.wanted.group is not None and clique.wanted.group.name == group:
            replicas.setdefault(clique.wanted.group_replica, []).append(clique)
    return replicas


def group_health(group: Group, cliques: Iterable[CliqueHealth]) -> GroupHealth:
    """The health of a group, from that of all cliques of its replica."""
    return GroupHealth(group, by_replica(cliques, group.name).values())
