"""Reports shortages of fabric channels: a pod in a domain takes one channel of its node, and channels are
limited.

Nodes of current fabrics have one channel: one pod in a domain fits on a node, of whichever set, whatever else
is free there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from grove import timing
from grove.api.formats.name_list import name_list
from grove.plan.cliques.health import CliqueHealth
from grove.plan.desired.expand import Gang
from grove.plan.fabric.model import ChannelHolder, DomainSnapshot


def busy_channels_message(snapshot: DomainSnapshot, now: float) -> tuple[str, float | None]:
    """The message about the holders of the channels that pods of a domain wait for, once they have waited for
    long; and when to check again, because changes of other domains do not enqueue this one."""
    if not snapshot.unschedulable or _exceeds_channels(snapshot):
        return "", None
    due = min(snapshot.unschedulable) + timing.UNSCHEDULABLE_WAIT
    if now < due or not snapshot.holders:
        return "", due if now < due else now + timing.UNSCHEDULABLE_WAIT
    kind, count = snapshot.provider.api.name, len(snapshot.unschedulable)
    pods = "1 pod" if count == 1 else f"{count} pods"
    holders = list(_holder_texts(kind, snapshot))
    message = (
        f"{pods} of {kind} {snapshot.name} found no node for {timing.UNSCHEDULABLE_WAIT:g} s, and a node has "
        f"one channel: {name_list(holders, separator='; ')}"
    )
    return message, now + timing.UNSCHEDULABLE_WAIT


def _exceeds_channels(snapshot: DomainSnapshot) -> bool:
    """Whether the domain alone has more pods than there are channels: that is not due to other domains."""
    return snapshot.channels is not None and 0 < snapshot.channels < snapshot.members


def _holder_texts(kind: str, snapshot: DomainSnapshot) -> Iterator[str]:
    """The domains of the namespace by name. Those of other namespaces are only counted, with their nodes: an
    administrator finds them by the label of the nodes."""
    others: list[ChannelHolder] = []
    for holder in snapshot.holders:
        if holder.namespace != snapshot.namespace:
            others.append(holder)
            continue
        owners = f" of PodCliqueSet {', '.join(holder.owners)}" if holder.owners else ""
        yield f"{kind} {holder.namespace}/{holder.name}{owners} holds {name_list(holder.nodes)}"
    if others:
        nodes = len({node for holder in others for node in holder.nodes})
        held = "1 node" if nodes == 1 else f"{nodes} nodes"
        domains = f"1 {kind} of another namespace holds"
        if len(others) > 1:
            domains = f"{len(others)} {kind}s of other namespaces hold"
        yield f"{domains} {held}"


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


def first_shortage(gangs: Iterable[Gang], views: Mapping[str, CliqueHealth]) -> str:
    """The shortage of the first of these gangs that waits for nodes; empty if there is none."""
    waiting = (gang for gang in gangs if any(not views[clique.name].scheduled for clique in gang.cliques))
    return next(filter(None, map(channel_shortage, waiting)), "")
