"""Places in fabric domains: a pod takes one channel of its node, and there are only so many.

A node of today's fabrics has one: whatever else is free there, one pod in a domain fits, of whichever set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grove.api import times
from grove.api.pods import Pod
from grove.plan.domain_model import DomainSnapshot, Holder
from grove.plan.expand import Gang

PATIENCE = 60.0
"""How long pods may look for nodes before somebody is told who has them."""
_MOST_NAMED = 3
_SCHEDULED = "PodScheduled"
_IN_VAIN = "Unschedulable"


def unschedulable_since(pod: Pod) -> float | None:
    """Since when the scheduler has found no node for a pod; None if it has, or has not looked."""
    for fact in pod.status.conditions:
        if fact.type == _SCHEDULED and fact.status == "False" and fact.reason == _IN_VAIN:
            said = fact.last_transition_time or pod.metadata.creation_timestamp
            return times.parse(said).timestamp() if said else 0.0
    return None


def busy(snapshot: DomainSnapshot, now: float) -> tuple[str, float | None]:
    """Who has the channels that pods of a domain wait for, once they have waited for long; and when to look
    again, for others come and go without anybody's telling this domain."""
    if not snapshot.unplaced:
        return "", None
    due = min(snapshot.unplaced) + PATIENCE
    if now < due or not snapshot.holders:
        return "", due if now < due else now + PATIENCE
    kind, count = snapshot.provider.api.name, len(snapshot.unplaced)
    pods = "1 pod" if count == 1 else f"{count} pods"
    named = "; ".join(_held(kind, holder, snapshot.namespace) for holder in snapshot.holders[:_MOST_NAMED])
    words = (
        f"{pods} of {kind} {snapshot.name} found no node for {PATIENCE:g} s, and a node has one channel: "
        f"{named}{_more(snapshot.holders)}"
    )
    return words, now + PATIENCE


def _held(kind: str, holder: Holder, namespace: str) -> str:
    """Names of objects in other namespaces are not disclosed; an administrator finds them by the nodes."""
    nodes = ", ".join(holder.nodes[:_MOST_NAMED]) + _more(holder.nodes)
    if holder.namespace != namespace:
        return f"a {kind} of another namespace holds {nodes}"
    owners = f" of PodCliqueSet {', '.join(holder.owners)}" if holder.owners else ""
    return f"{kind} {holder.namespace}/{holder.name}{owners} holds {nodes}"


def _more(listed: Sequence[object]) -> str:
    return f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""


def cramped(gang: Gang, channels: Mapping[str, int]) -> str:
    """Why a gang cannot be placed although its nodes may have room: more of its pods must be in domains at
    once than there are channels. Empty if that is not why."""
    for vendor, there in channels.items():
        seated = [one for one in gang.cliques if any(seat.provider.vendor == vendor for seat in one.seats)]
        needed = sum(clique.min_available for clique in seated)
        if 0 < there < needed:
            nodes = "1 node has" if there == 1 else f"{there} nodes have"
            return (
                f"{needed} pods that are in fabric domains need a node each, and {nodes} a channel: "
                "use fewer pods with more accelerators each, or add nodes"
            )
    return ""
