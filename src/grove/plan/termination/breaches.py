"""Finds the cliques and groups of a replica that are below `minAvailable`, and since when.

Only pods that were scheduled count as lost: a workload that waits for room is not terminated. Cliques and
groups that are being updated are left out, and cliques whose pods are from before a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct

from grove.api.conditions import ConditionType
from grove.plan.cliques.health import by_replica, group_health
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


class Breaches(Struct, frozen=True):
    """The breaches of one replica."""

    of_replica: tuple[Breach, ...]
    """Those that require a restart of the whole replica: cliques outside of groups, and groups."""
    of_group_replicas: tuple[tuple[Breach, ...], ...]
    """Of each replica of a group that has `minAvailable` replicas without these."""


def find_breaches(
    snapshot: Snapshot,
    groups: Sequence[Group],
    cliques: Mapping[str, CliqueState],
    history: TerminationHistory,
    updating: UpdatesInProgress,
    now: float,
) -> Breaches:
    """Returns the breaches of a replica."""
    breached = [clique for clique in cliques.values() if _counts(clique, history)]
    of_replica = [
        _of_clique(clique, now)
        for clique in breached
        if clique.wanted.group is None and clique.wanted.name not in updating.cliques
    ]
    of_group_replicas: list[tuple[Breach, ...]] = []
    for group in groups:
        replicas = by_replica(breached, group.name).values()
        if not replicas or group.name in updating.groups:
            continue
        if not group_health(group, [clique.view for clique in cliques.values()]).breached:
            of_group_replicas += (tuple(_of_clique(clique, now) for clique in inside) for inside in replicas)
        elif (known := snapshot.groups.get(group.name)) is not None:
            inside_group = tuple(chain.from_iterable(replicas))
            of_replica.append(Breach(group.name, _since(known.status.conditions, now), inside_group))
    return Breaches(tuple(of_replica), tuple(of_group_replicas))


def _counts(clique: CliqueState, history: TerminationHistory) -> bool:
    """Breached, and its pods have been scheduled since its last restart."""
    return (
        clique.view.breached
        and history.was_scheduled(clique)
        and not history.is_restart_pending(clique.wanted.gang)
    )


def _of_clique(clique: CliqueState, now: float) -> Breach:
    assert clique.found is not None
    return Breach(clique.wanted.name, _since(clique.found.status.conditions, now), (clique,))


def _since(conditions: Conditions, now: float) -> float:
    known = find(conditions, ConditionType.MIN_AVAILABLE_BREACHED)
    scheduled = find(conditions, ConditionType.WAS_SCHEDULED)
    if known is None or known.status != "True":
        return now  # the condition is not written yet
    scheduled_at = timestamp(scheduled.last_transition_time) if scheduled else 0.0
    return max(timestamp(known.last_transition_time), scheduled_at)
