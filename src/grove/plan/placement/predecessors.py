"""Which predecessors still use the nodes of their successors.

Plans of replicas read our pods from another watch than placement reads all pods from. In between, a
predecessor is gone in one of them only: its room would count as free and not be reserved for its successor,
or count twice, and the successor would lose its node. So what counts is the watch of all pods, which has the
use of nodes as well.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from grove.plan.placement.demand import Demand, WantedPod


def with_present_predecessors(demand: Demand, before: Demand | None, node_of: Callable[[str], str]) -> Demand:
    """The demand with the predecessors that exist, of those that the plan reports now or has reported
    `before`. `node_of` maps the name of a pod to its node; empty if it does not exist or is not bound."""
    known = {pod.slot: pod for pod in (before.pods if before is not None else ()) if pod.predecessor}
    pods = tuple(_with_predecessor(pod, known.get(pod.slot), node_of) for pod in demand.pods)
    return demand if pods == demand.pods else replace(demand, pods=pods)


def _with_predecessor(pod: WantedPod, before: WantedPod | None, node_of: Callable[[str], str]) -> WantedPod:
    reported = pod if pod.predecessor or before is None or pod.node else before
    if not reported.predecessor:
        return pod
    if node_of(reported.predecessor_name) != reported.predecessor:
        return replace(pod, predecessor="", predecessor_name="")
    return replace(pod, predecessor=reported.predecessor, predecessor_name=reported.predecessor_name)
