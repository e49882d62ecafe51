"""Which nodes with a vendor's accelerators have a channel. Without one, their pods cannot join a domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from grove import timing
from grove.api.formats.name_list import name_list
from grove.fabrics.provider import FabricDomainProvider


class ChannelCoverage(Struct, frozen=True):
    """The nodes with accelerators, and which of them have no channel."""

    accelerated: int
    without_channel: tuple[str, ...]
    """The names of the nodes without a channel."""
    smallest: int
    """The lowest number of accelerators of a node with a channel; 0 if there is no such node."""
    largest_partition: int = 0
    """How many nodes with a channel the largest partition of the fabric has."""


def channel_coverage(
    accelerators: Mapping[str, int], channels: Mapping[str, int], partitions: Mapping[str, str] | None = None
) -> ChannelCoverage:
    """From the number of accelerators and of channels of each node, and the partition that it is in."""
    accelerated = {node: amount for node, amount in accelerators.items() if amount}
    joinable = [amount for node, amount in accelerated.items() if channels.get(node)]
    without = tuple(sorted(node for node in accelerated if not channels.get(node)))
    sizes = Counter(value for node, value in (partitions or {}).items() if value and channels.get(node))
    return ChannelCoverage(
        len(accelerated), without, min(joinable, default=0), max(sizes.values(), default=0)
    )


def coverage_problem(found: ChannelCoverage, provider: FabricDomainProvider) -> str:
    """A message that names the nodes without a channel; empty if there are none."""
    if not found.without_channel:
        return ""
    named = name_list(found.without_channel, timing.NODES_WITHOUT_CHANNEL_NAMED)
    return (
        f"{len(found.without_channel)} of {found.accelerated} nodes with accelerators of {provider.vendor} "
        f"have no channel and cannot be in a {provider.api.name}: {named}"
    )
