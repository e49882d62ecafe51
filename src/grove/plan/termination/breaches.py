"""Finds the cliques and groups of a replica that are below `minAvailable`, and since when.

Only pods that were scheduled count as lost: a workload that waits for room is not terminated. Cliques and
groups that are being updated are left out, and cliques whose pods are from before a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct

from grove.api.conditions import ConditionType
from grove.plan.cliques.health import GroupHealth, by_replica
from grove.plan.cliques.state import CliqueState
from grove.plan.conditions import Conditions, find
from grove.plan.desired.expand import Group
from grove.plan.rollout.progress import UpdatesInProgress
from grove.plan.snapshot import Snapshot
from grove.plan.termination.history import TerminationHistory
from grove.plan.timestamps import timestamp


class Breach(Struct, frozen=True):
    """A clique or group that has been below `minAvailable` since a moment, by its status."""

    name: str
    since: float
    cliques: tuple[CliqueState, ...]


class BreachFinder:
    """Finds the breaches of one replica."""

    def __init__(
        self,
        snapshot: Snapshot,
        cliques: Mapping[str, CliqueState],
        history: TerminationHistory,
        updating: UpdatesInProgress,
        now: float,
    ) -> None:
        self._snapshot, self._cliques, self._history = snapshot, cliques, history
        self._updating, self._now = updating, now

    def of_replica(self, groups: Sequence[Group]) -> list[Breach]:
        """The breaches that require a restart of the whole replica: cliques outside of groups, and groups."""
        found = [
            self._of_clique(clique)
            for name, clique in self._cliques.items()
            if clique.wanted.group is None and name not in self._updating.cliques and self._counts(clique)
        ]
        for group in groups:
            known = self._snapshot.groups.get(group.name)
            if known is None or group.name in self._updating.groups:
                continue
            replicas = by_replica(self._cliques.values(), group.name)
            inside = chain.from_iterable(replicas.values())
            if (breached := tuple(filter(self._counts, inside))) and _is_breached(group, replicas):
                found.append(Breach(group.name, self._since(known.status.conditions), breached))
        return found

    def of_group_replicas(self, group: Group) -> list[list[Breach]]:
        """The breaches of each replica of a group that has `minAvailable` replicas without these."""
        replicas = by_replica(self._cliques.values(), group.name)
        if group.name in self._updating.groups or _is_breached(group, replicas):
            return []
        found = [
            [self._of_clique(clique) for clique in inside if self._counts(clique)]
            for inside in replicas.values()
        ]
        return [breaches for breaches in found if breaches]

    def _counts(self, clique: CliqueState) -> bool:
        """Breached, and its pods have been scheduled since its last restart."""
        return (
            clique.view.breached
            and self._history.was_scheduled(clique)
            and not self._history.is_restart_pending(clique.wanted.gang)
        )

    def _of_clique(self, clique: CliqueState) -> Breach:
        assert clique.found is not None
        return Breach(clique.wanted.name, self._since(clique.found.status.conditions), (clique,))

    def _since(self, conditions: Conditions) -> float:
        known = find(conditions, ConditionType.MIN_AVAILABLE_BREACHED)
        scheduled = find(conditions, ConditionType.WAS_SCHEDULED)
        if known is None or known.status != "True":
            return self._now  # the condition is not written yet
        scheduled_at = timestamp(scheduled.last_transition_time) if scheduled else 0.0
        return max(timestamp(known.last_transition_time), scheduled_at)


def _is_breached(group: Group, replicas: Mapping[int, Sequence[CliqueState]]) -> bool:
    return GroupHealth(group, [[clique.view for clique in inside] for inside in replicas.values()]).breached
