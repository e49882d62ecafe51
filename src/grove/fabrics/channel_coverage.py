"""What the nodes of a cluster have for the domains of a vendor."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.fabrics.provider import FabricDomainProvider

_MAX_NAMED = 5


class ChannelCoverage(Struct, frozen=True):
    """The nodes with accelerators, and which of them can be in a domain."""

    accelerated: int
    without_channel: tuple[str, ...]
    """Those without a channel, by which their pods would join a domain."""
    smallest: int
    """How many accelerators the smallest of the others has; 0 if there is no other."""


def channel_coverage(accelerators: Mapping[str, int], channels: Mapping[str, int]) -> ChannelCoverage:
    """From how many accelerators and how many channels each node has."""
    having = {node: amount for node, amount in accelerators.items() if amount}
    joinable = [amount for node, amount in having.items() if channels.get(node)]
    bare = tuple(sorted(node for node in having if not channels.get(node)))
    return ChannelCoverage(len(having), bare, min(joinable, default=0))


def coverage_problem(found: ChannelCoverage, provider: FabricDomainProvider) -> str:
    """What is wrong with nodes that are not alike; empty if they are."""
    if not found.without_channel:
        return ""
    more = (
        f" and {len(found.without_channel) - _MAX_NAMED} more"
        if len(found.without_channel) > _MAX_NAMED
        else ""
    )
    named = ", ".join(found.without_channel[:_MAX_NAMED]) + more
    return (
        f"{len(found.without_channel)} of {found.accelerated} nodes with accelerators of {provider.vendor} have no "
        f"channel and cannot be in a {provider.api.name}: {named}"
    )
