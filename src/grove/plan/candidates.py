"""What an update may take down: the pods of a clique, or the replicas of a group, as units to be judged."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api import labels
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.enrolment import Enrolled
from grove.plan.leaving import lingers_until
from grove.plan.ledger import Member, age, succeeds
from grove.plan.units import Unit


def pods_as_units(clique: Enrolled, taken: tuple[str, ...], current: str, now: float) -> list[Unit[str]]:
    """The one that was chosen before, then the oldest first."""
    leaving = {state.index_of(pod): lingers_until(pod, now) for pod in clique.pods if state.terminating(pod)}
    units = [_pod_as_unit(clique, member, taken, leaving.get(member.index, 0.0)) for member in clique.members]
    return sorted(units, key=lambda unit: (unit.name != current, age(unit.pods[0] if unit.pods else None)))


def _pod_as_unit(clique: Enrolled, member: Member, taken: tuple[str, ...], until: float) -> Unit[str]:
    pod = member.pod
    ready = pod is not None and state.alive(pod) and state.ready(pod)
    ours = not ready and any(succeeds(clique.uid, clique.wanted.name, member, name) for name in taken)
    return Unit(
        member.name,
        outdated=pod is not None and outdated(clique, pod),
        ready=ready,
        whole=pod is not None,
        lingers_until=until,
        ours=ours,
        unplaceable=pod is not None and state.unschedulable(pod),
        pods=(pod,) if pod is not None else (),
    )


def replica_as_unit(index: int, cliques: Sequence[Enrolled], taken: tuple[int, ...], now: float) -> Unit[int]:
    """A replica of a group, which goes and comes as a whole."""
    members = [(clique, member.pod) for clique in cliques for member in clique.members]
    pods = tuple(pod for _, pod in members if pod is not None)
    leaving = [pod for clique in cliques for pod in clique.pods if state.terminating(pod)]
    return Unit(
        index,
        outdated=any(pod is not None and outdated(clique, pod) for clique, pod in members),
        ready=all(clique.view.available for clique in cliques),
        whole=len(pods) == len(members),
        lingers_until=max((lingers_until(pod, now) for pod in leaving), default=0.0),
        ours=index in taken,
        unplaceable=any(map(state.unschedulable, pods)),
        pods=pods,
    )


def outdated(clique: Enrolled, pod: Pod) -> bool:
    """Whether a pod is of another template than its clique."""
    written = pod.metadata.labels.get(labels.TEMPLATE_HASH)
    return written != clique.wanted.template_hash and (not clique.theirs or written != clique.theirs)
