"""What nodes have for fabric domains: the channels by which pods join them, and accelerators.

Channels are devices of the vendor's DRA driver, seen in its ResourceSlices; they are looked at as soon as a
set is in a domain. Nodes are looked at only for the automatic mode, which is for clusters whose nodes are all
alike: elsewhere the operator has no right to see them, and needs none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import structlog

from grove.api.cluster import Node, NodeStatus, ResourceSlice
from grove.api.meta import ObjectMeta
from grove.fabrics.provider import FabricDomainProvider
from grove.fabrics.registry import Providers
from grove.fabrics.survey import Survey, partial, survey
from grove.kube.cache import Cache
from grove.kube.client import Client
from grove.kube.reflector import Arrivals, Reflector
from grove.kube.resource import NODES, RESOURCE_SLICES

log = structlog.get_logger("grove.operator")

_MOMENT = 1.0  # nodes come and go in numbers: what is to be said of them can wait so long


class Channels:
    """The nodes of the cluster, as far as fabric domains go. `automatic`: somebody wants to know whether they
    are alike."""

    def __init__(self, fabrics: Providers, *, automatic: bool = False) -> None:
        auto = fabrics.auto if automatic else None
        self._hosts = _Hosts(auto) if auto is not None else None
        self._offers = {provider.vendor: _Offers(provider) for provider in fabrics if provider.driver}
        self._listeners: list[Callable[[str], None]] = []
        self._surveys: dict[str, Survey] = {}
        self._said: tuple[str, ...] = ()
        self._changed: set[str] = set()
        self._later: asyncio.TimerHandle | None = None
        for offers in self._offers.values():
            offers.on_change = self._on_offers
        if self._hosts is not None and auto is not None:
            self.want(auto.vendor)
            self._hosts.subscribe(self._on_host)
            self._hosts.on_settled(self._on_hosts)

    def want(self, vendor: str) -> None:
        """Look at the channels of a vendor from now on."""
        if (offers := self._offers.get(vendor)) is not None:
            offers.wanted.set()

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the vendor whose channels are more now, or fewer: a moment later, and once for
        all that happens meanwhile."""
        self._listeners.append(listener)

    def count(self, vendor: str) -> int | None:
        """How many pods can be in domains of a vendor at once; None if nobody knows."""
        offers = self._offers.get(vendor)
        return sum(offers.by_node.values()) if offers is not None and offers.synced.is_set() else None

    def held(self, vendor: str) -> Mapping[str, list[str]]:
        """By the UID of a domain, the nodes that say that they are in it, as far as nodes are seen."""
        found: dict[str, list[str]] = {}
        if self._hosts is not None and self._hosts.provider.vendor == vendor:
            for node in self._hosts:
                if uid := node.metadata.labels.get(vendor):
                    found.setdefault(uid, []).append(node.metadata.name)
        return found

    def survey(self, vendor: str) -> Survey | None:
        """How the nodes stand; None if nobody knows."""
        hosts, offers = self._hosts, self._offers.get(vendor)
        if hosts is None or offers is None or hosts.provider.vendor != vendor:
            return None
        if not (hosts.synced.is_set() and offers.synced.is_set()):
            return None
        if vendor not in self._surveys:
            amounts = {node.metadata.name: int(node.status.allocatable[vendor]) for node in hosts}
            self._surveys[vendor] = survey(amounts, offers.by_node)
        return self._surveys[vendor]

    async def run(self, client: Client, arrivals: Arrivals) -> None:
        """Watch what is wanted, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._hosts is not None:
                    tasks.create_task(Reflector(client, self._hosts).run())
                for offers in self._offers.values():
                    tasks.create_task(_follow(client, offers, arrivals))
        finally:
            if self._later is not None:
                self._later.cancel()

    def _on_host(self, old: Node | None, new: Node | None) -> None:
        """Of which domain it is changes often, and nobody waits for that."""
        if old is None or new is None or old.status != new.status:
            self._on_hosts()

    def _on_hosts(self) -> None:
        self._surveys.clear()
        self._tell_later()

    def _on_offers(self, vendor: str) -> None:
        self._surveys.clear()
        self._changed.add(vendor)
        self._tell_later()

    def _tell_later(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_MOMENT, self._tell)

    def _tell(self) -> None:
        self._later = None
        changed, self._changed = self._changed, set()
        for vendor in changed:
            for listener in self._listeners:
                listener(vendor)
        if self._hosts is not None:
            self._say(self._hosts.provider)

    def _say(self, provider: FabricDomainProvider) -> None:
        """Whether all nodes are alike, whenever that is not what was said last."""
        found = self.survey(provider.vendor)
        if found is None or found.bare == self._said:
            return
        self._said = found.bare
        tell, words = log.warning if found.bare else log.info, partial(found, provider)
        tell("nodes surveyed", key=provider.vendor, action="go on", reason=words or "they are alike")


async def _follow(client: Client, offers: _Offers, arrivals: Arrivals) -> None:
    await offers.wanted.wait()
    await Reflector(client, offers, arrivals=arrivals, optional=True).run()


class _Offers(Cache[ResourceSlice]):
    """The channels of one vendor, counted by node."""

    def __init__(self, provider: FabricDomainProvider) -> None:
        super().__init__(RESOURCE_SLICES, ResourceSlice, fields=f"spec.driver={provider.driver}")
        self.wanted = asyncio.Event()
        self.by_node: Counter[str] = Counter()
        self.on_change: Callable[[str], None] = lambda _: None
        self._provider = provider
        self.subscribe(self._count)
        self.on_settled(lambda: self.on_change(provider.vendor))

    def _count(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        changes: Counter[str] = Counter()
        for found, sign in ((old, -1), (new, 1)):
            if found is not None and (node := found.spec.node_name):
                changes[node] += sign * self._provider.channels(found.spec.devices)
        changes = Counter({node: change for node, change in changes.items() if change})
        self.by_node.update(changes)
        if changes and self.synced.is_set():
            self.on_change(self._provider.vendor)


class _Hosts(Cache[Node]):
    """Keeps of each node, under the name of the vendor, which domain it is in and how many accelerators it
    has. Nothing else: there are many, and they tell of themselves often."""

    def __init__(self, provider: FabricDomainProvider) -> None:
        super().__init__(NODES, Node)
        self.provider = provider

    def _store(self, old: Node | None, new: Node) -> None:
        meta, vendor = new.metadata, self.provider.vendor
        holder = self.provider.node_holder({"metadata": {"labels": meta.labels}})
        slim = ObjectMeta(
            meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            labels={vendor: holder} if holder else {},
        )
        amount = self.provider.amount(new.status.allocatable)
        super()._store(old, Node(slim, status=NodeStatus({vendor: amount})))
