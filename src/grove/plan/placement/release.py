"""When nominated pods are released.

A nomination holds a node only against pods that the scheduler considers afterwards. Pods that it has taken
up before, and not bound yet, are invisible. So a gang is released once all its nominations are observed and
every pod that was unbound at that moment is bound, unschedulable or gone. The watch of pods shows them in the
order of their changes: at that moment all pods that were created before the nominations are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision
from grove.plan.placement.demand import Demand, pod_name


class Backlog(Struct, frozen=True):
    """The pods in flight when the last nomination of a gang was observed, as far as they still are."""

    since: float
    """When the last of them was decided, or when the nomination was observed."""
    pods: frozenset[str]
    """Their UIDs."""
    began: float
    """When the nomination was observed."""

    def expired(self, now: float) -> bool:
        """Whether what is left was not in flight: nothing was decided for a while. The scheduler counts the
        nominations when it considers these pods."""
        return now >= self.expires_at

    @property
    def expires_at(self) -> float:
        return min(self.since + timing.NOMINATION_LIMIT, self.began + timing.BACKLOG_LIMIT)


def new_backlog(in_flight: frozenset[str], now: float) -> Backlog:
    return Backlog(now, in_flight, now)


def nominations_observed(demand: Demand, assignment: Assignment, nominated: Callable[[str], str]) -> bool:
    """Whether each pod with a node is observed with its nomination. `nominated` maps the name of a pod to the
    node of its nomination. Pods of a group that are created only once the minimum is scheduled do not
    count."""
    later = demand.extras if demand.grouped else frozenset()
    wanted = {pod.slot: pod.name for pod in demand.unbound if pod.name or pod_name(pod.slot) not in later}
    return all(nominated(wanted[slot]) == node for slot, node in assignment.nodes.items() if slot in wanted)


def outdated_nominations(demand: Demand, decision: Decision | None, observed: Mapping[str, str]) -> set[str]:
    """The nodes that gated pods are nominated to although they were given other ones, or none. `observed` has
    the node by the name of a pod."""
    nodes = decision.nodes if decision is not None else {}
    return {
        node
        for pod in demand.unbound
        if pod.gated and (node := observed.get(pod.name, "")) and node != nodes.get(pod.slot, "")
    }


def remaining(backlog: Backlog, in_flight: frozenset[str], now: float) -> Backlog:
    """What of the backlog is still in flight. While the scheduler works on it, it may take longer: binds wait
    for the rate limit of the scheduler's client."""
    pods = backlog.pods & in_flight
    return backlog if len(pods) == len(backlog.pods) else Backlog(now, pods, backlog.began)
