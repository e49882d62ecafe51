"""Reports shortages of fabric channels: a pod in a domain takes one channel of its node, and channels are
limited.

Nodes of current fabrics have one channel: one pod in a domain fits on a node, of whichever set, whatever else
is free there.
"""

from __future__ import annotations

from grove import timing
from grove.api.formats.name_list import name_list
from grove.plan.desired.expand import Gang
from grove.plan.fabric.model import ChannelHolder, DomainSnapshot


def busy_channels_message(snapshot: DomainSnapshot, now: float) -> tuple[str, float | None]:
    """The message about the holders of the channels that pods of a domain wait for, once they have waited for
    long; and when to check again, because changes of other domains do not enqueue this one."""
    if not snapshot.unschedulable:
        return "", None
    due = min(snapshot.unschedulable) + timing.UNSCHEDULABLE_WAIT
    if now < due or not snapshot.holders:
        return "", due if now < due else now + timing.UNSCHEDULABLE_WAIT
    kind, count = snapshot.provider.api.name, len(snapshot.unschedulable)
    pods = "1 pod" if count == 1 else f"{count} pods"
    holders = [_holder_text(kind, holder, snapshot.namespace) for holder in snapshot.holders]
    message = (
        f"{pods} of {kind} {snapshot.name} found no node for {timing.UNSCHEDULABLE_WAIT:g} s, and a node has "
        f"one channel: {name_list(holders, separator='; ')}"
    )
    return message, now + timing.UNSCHEDULABLE_WAIT


def _holder_text(kind: str, holder: ChannelHolder, namespace: str) -> str:
    """Names of objects in other namespaces are not disclosed; an administrator finds them by the nodes."""
    nodes = name_list(holder.nodes)
    if holder.namespace != namespace:
        return f"a {kind} of another namespace holds {nodes}"
    owners = f" of PodCliqueSet {', '.join(holder.owners)}" if holder.owners else ""
    return f"{kind} {holder.namespace}/{holder.name}{owners} holds {nodes}"


def channel_shortage(gang: Gang) -> str:
    """Why a gang cannot be scheduled although its nodes may have room: more of its pods must be in domains at
    once than there are channels. Empty if that is not the cause."""
    domains = [(clique, domain) for clique in gang.cliques for domain in clique.fabric_domains]
    for vendor, available in {domain.provider.vendor: domain.channels or 0 for _, domain in domains}.items():
        needed = sum(clique.min_available for clique, domain in domains if domain.provider.vendor == vendor)
        if 0 < available < needed:
            nodes = "1 node has" if available == 1 else f"{available} nodes have"
            return (
                f"{needed} pods that are in fabric domains need a node each, and {nodes} a channel: "
                "use fewer pods with more accelerators each, or add nodes"
            )
    return ""
