"""Converts the pods of a clique, or the replicas of a group, to the units that a rollout replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grove.api.types.pod import Pod
from grove.plan.cliques.state import CliqueState
from grove.plan.members import pod_state
from grove.plan.members.counts import is_updated
from grove.plan.members.membership import Member, age_key, is_successor
from grove.plan.rollout.budget import terminating_until
from grove.plan.rollout.units import UpdateUnit


def pods_as_units(
    clique: CliqueState, replaced_earlier: tuple[str, ...], current: str, now: float
) -> list[UpdateUnit[str]]:
    """The unit that was selected before, then the oldest first."""
    terminating = {
        pod_state.index_of(pod): terminating_until(pod, now)
        for pod in clique.pods
        if pod_state.terminating(pod)
    }
    units = [
        _pod_as_unit(clique, member, replaced_earlier, terminating.get(member.index, 0.0))
        for member in clique.members
    ]
    return sorted(
        units, key=lambda unit: (unit.name != current, age_key(unit.pods[0] if unit.pods else None))
    )


def _pod_as_unit(
    clique: CliqueState, member: Member, replaced_earlier: tuple[str, ...], until: float
) -> UpdateUnit[str]:
    pod = member.pod
    ready = pod is not None and pod_state.alive(pod) and pod_state.ready(pod)
    replaced_by_update = not ready and any(
        is_successor(clique.ref.uid, clique.wanted.name, member, name) for name in replaced_earlier
    )
    return UpdateUnit(
        member.name,
        outdated=pod is not None and outdated(clique, pod),
        ready=ready,
        complete=pod is not None,
        terminating_until=until,
        replaced_by_update=replaced_by_update,
        unschedulable=pod is not None and pod_state.unschedulable(pod),
        pods=(pod,) if pod is not None else (),
    )


def replicas_as_units(
    replicas: Mapping[int, Sequence[CliqueState]],
    replaced_earlier: tuple[int, ...],
    current: int | None,
    now: float,
) -> list[UpdateUnit[int]]:
    """The unit that was selected before, then in the order of indices."""
    units = [_replica_as_unit(index, cliques, replaced_earlier, now) for index, cliques in replicas.items()]
    return sorted(units, key=lambda unit: unit.name != current)


def _replica_as_unit(
    index: int, cliques: Sequence[CliqueState], replaced_earlier: tuple[int, ...], now: float
) -> UpdateUnit[int]:
    """A replica of a group, which is replaced as a whole."""
    members = [(clique, member.pod) for clique in cliques for member in clique.members]
    pods = tuple(pod for _, pod in members if pod is not None)
    terminating = [pod for clique in cliques for pod in clique.pods if pod_state.terminating(pod)]
    return UpdateUnit(
        index,
        outdated=any(pod is not None and outdated(clique, pod) for clique, pod in members),
        ready=all(clique.view.available for clique in cliques),
        complete=len(pods) == len(members),
        terminating_until=max((terminating_until(pod, now) for pod in terminating), default=0.0),
        replaced_by_update=index in replaced_earlier,
        unschedulable=any(map(pod_state.unschedulable, pods)),
        pods=pods,
    )


def outdated(clique: CliqueState, pod: Pod) -> bool:
    """Whether a pod has another template than its clique, or is from before a restart."""
    return not is_updated(pod, clique.wanted, clique.upstream_hash)
