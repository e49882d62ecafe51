"""Which nodes can join fabric domains: counts the channels by which pods join a domain, and the accelerators.

Channels are devices of the vendor's DRA driver, listed in its ResourceSlices; they are watched as soon as a
set is in a domain. Nodes are required in the automatic mode, which is for clusters whose nodes are all alike;
elsewhere only if the operator reads nodes anyway and a set is in a domain: it may have no RBAC permission to
read them, and fabrics need none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

from grove import timing
from grove.api.types.kubernetes_objects import ResourceSlice
from grove.fabrics.channel_coverage import ChannelCoverage, channel_coverage, coverage_problem
from grove.fabrics.provider import FabricDomainProvider
from grove.fabrics.registry import Providers
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import CrdWaiter, Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import RESOURCE_SLICES
from grove.logger import get_logger
from grove.operator.caches.nodes import Nodes

log = get_logger("grove.operator")


class FabricNodes:
    """The channels and accelerators of nodes. `automatic`: the provider of automatic domains, if they are on:
    then nodes are watched as well, and whether all nodes with accelerators have a channel is logged.
    `reads_nodes`: the operator may read nodes, for this or for another purpose."""

    def __init__(
        self,
        fabrics: Providers,
        nodes: Nodes,
        automatic: FabricDomainProvider | None = None,
        *,
        reads_nodes: bool = False,
    ) -> None:
        self._fabrics, self._nodes, self._automatic = fabrics, nodes, automatic
        self._reads_nodes = reads_nodes
        self._required: set[str] = set()
        """The vendors with domains in use."""
        self._channel_caches = {
            provider.vendor: _ChannelCache(provider) for provider in fabrics if provider.driver
        }
        self._listeners: list[Callable[[str], None]] = []
        self._coverage: dict[str, ChannelCoverage] = {}
        self._logged: tuple[str, ...] = ()
        self._changed_vendors: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        for channel_cache in self._channel_caches.values():
            channel_cache.on_change = self._on_channels
        if automatic is not None:
            self.require(automatic.vendor)
            nodes.require()
            label = automatic.partition_label
            nodes.subscribe(
                self._on_nodes, lambda node: (node.status.allocatable, node.metadata.labels.get(label))
            )
        nodes.subscribe_lists(self._on_list)

    @property
    def channels(self) -> tuple[Cache[ResourceSlice], ...]:
        """The caches of the slices that list channels, one for each vendor with a driver."""
        return tuple(self._channel_caches.values())

    def require(self, vendor: str) -> None:
        """Watch the channels of a vendor from now on; and the labels of nodes with their domain and their
        partition, where nodes are read."""
        if vendor in self._required:
            return
        self._required.add(vendor)
        if (channel_cache := self._channel_caches.get(vendor)) is not None:
            channel_cache.required.set()
        provider = self._fabrics.of(vendor)
        if self._reads_nodes and provider is not self._automatic:  # whose labels are kept anyway
            self._nodes.require(filter(None, (provider.domain_label, provider.partition_label)))

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the vendor when the number of its channels changes: after a short delay, once
        for all changes in between."""
        self._listeners.append(listener)

    def count(self, vendor: str) -> int | None:
        """How many pods can be in domains of a vendor at once; None if not known."""
        channel_cache = self._channel_caches.get(vendor)
        return channel_cache.total if channel_cache is not None and channel_cache.synced.is_set() else None

    def nodes_by_domain(self, vendor: str) -> Mapping[str, list[str]]:
        """By the UID of a domain, the nodes whose label puts them into it; empty if nodes are not watched."""
        label, found = self._fabrics.of(vendor).domain_label, dict[str, list[str]]()
        for node in self._nodes if label else ():
            if uid := node.metadata.labels.get(label):
                found.setdefault(uid, []).append(node.metadata.name)
        return found

    def domain_of_node(self, vendor: str, name: str) -> str:
        """The UID of the domain that the label of a node puts it into; empty if none is known."""
        return self._label(name, self._fabrics.of(vendor).domain_label)

    def partition_of_node(self, vendor: str, name: str) -> str:
        """The partition that a node is in; empty if it is not known."""
        return self._label(name, self._fabrics.of(vendor).partition_label)

    def _label(self, node: str, label: str) -> str:
        found = self._nodes.get(node) if label else None
        return found.metadata.labels.get(label, "") if found is not None else ""

    def channel_coverage(self, vendor: str) -> ChannelCoverage | None:
        """How many nodes with accelerators have a channel; None if not known."""
        provider, channel_cache = self._automatic, self._channel_caches.get(vendor)
        if provider is None or channel_cache is None or provider.vendor != vendor:
            return None
        if not (self._nodes.synced and channel_cache.synced.is_set()):
            return None
        if vendor not in self._coverage:
            amounts = {node.metadata.name: provider.amount(node.status.allocatable) for node in self._nodes}
            label = provider.partition_label
            partitions = {node.metadata.name: node.metadata.labels.get(label, "") for node in self._nodes}
            self._coverage[vendor] = channel_coverage(amounts, channel_cache.by_node, partitions)
        return self._coverage[vendor]

    async def run(self, client: Client, crd_watch: CrdWaiter) -> None:
        """Watch the channels that are required, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for channel_cache in self._channel_caches.values():
                    tasks.create_task(_watch_when_required(client, channel_cache, crd_watch))
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _on_nodes(self) -> None:
        self._coverage.clear()
        self._schedule_notify()

    def _on_list(self) -> None:
        """The labels of nodes are known from now on."""
        if self._required:
            self._changed_vendors |= self._required
            self._schedule_notify()

    def _on_channels(self, vendor: str) -> None:
        self._coverage.clear()
        self._changed_vendors.add(vendor)
        self._schedule_notify()

    def _schedule_notify(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(timing.FABRIC_NODES_DELAY, self._notify)

    def _notify(self) -> None:
        self._timer = None
        changed, self._changed_vendors = self._changed_vendors, set()
        for vendor in changed:
            for listener in self._listeners:
                listener(vendor)
        if self._automatic is not None:
            self._log_coverage(self._automatic)

    def _log_coverage(self, provider: FabricDomainProvider) -> None:
        """Log whether all nodes with accelerators have a channel, if that changed since the last log line."""
        found = self.channel_coverage(provider.vendor)
        if found is None or found.without_channel == self._logged:
            return
        self._logged = found.without_channel
        write, message = log.warning if found.without_channel else log.info, coverage_problem(found, provider)
        reason = message or "all nodes with accelerators have a channel"
        write("nodes checked for channels", key=provider.vendor, action="continue", reason=reason)


async def _watch_when_required(client: Client, channel_cache: _ChannelCache, crd_watch: CrdWaiter) -> None:
    await channel_cache.required.wait()
    await Reflector(client, channel_cache, crd_watch=crd_watch, optional=True).run()


class _ChannelCache(Cache[ResourceSlice]):
    """The channels of one vendor, counted by node."""

    def __init__(self, provider: FabricDomainProvider) -> None:
        super().__init__(RESOURCE_SLICES, ResourceSlice, fields=f"spec.driver={provider.driver}")
        self.required = asyncio.Event()
        self.by_node: Counter[str] = Counter()
        self.total = 0
        self.on_change: Callable[[str], None] = lambda _: None
        self._provider = provider
        self.subscribe(self._count)
        self.on_synced_or_absent(lambda: self.on_change(provider.vendor))

    def _count(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        changes: Counter[str] = Counter()
        for found, sign in ((old, -1), (new, 1)):
            if found is not None and (node := found.spec.node_name):
                changes[node] += sign * self._provider.channels(found.spec.devices)
        changes = Counter({node: change for node, change in changes.items() if change})
        self.by_node.update(changes)
        self.total += changes.total()
        if changes and self.synced.is_set():
            self.on_change(self._provider.vendor)
