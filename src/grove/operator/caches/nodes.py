"""The nodes of the cluster: one cache and one watch for all that reads nodes.

Nodes are many and large, so of each only what is read is kept (`node_projection`), and without a reader nodes
are not watched: the operator may have no RBAC permission to read them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node, NodeSpec, NodeStatus
from grove.api.types.pod import PodCondition
from grove.fabrics.provider import FabricDomainProvider
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import NODES

PartOfNode = Callable[[Node], object]


class Nodes:
    """The nodes, with the labels of the required keys. With a `fabric` also with the vendor's accelerators,
    and with the labels of a node's fabric domain and partition. For `placement` also with everything that
    decides whether pods fit: allocatable resources, taints, cordon and readiness."""

    def __init__(self, fabric: FabricDomainProvider | None = None, *, placement: bool = False) -> None:
        self._fabric, self._placement = fabric, placement
        self._required_keys: frozenset[str] | None = None
        self._more_required = asyncio.Event()
        self._listed: _Listed | None = None
        self._labelled: Counter[str] = Counter()
        """How many nodes have each label."""
        self._listeners: list[tuple[Callable[[], None], PartOfNode | None]] = []
        self._name_listeners: list[Callable[[str], None]] = []
        self._label_listeners: list[Callable[[str], None]] = []
        self._list_listeners: list[Callable[[], None]] = []
        self._reflector: Reflector[Node, Node] | None = None

    def require(self, keys: Iterable[str] = ()) -> None:
        """Watch nodes, and keep the labels of these keys, too."""
        known = self._required_keys
        if known is None or not known.issuperset(keys := frozenset(keys)):
            self._required_keys = (known or frozenset()).union(keys)
            self._more_required.set()

    def subscribe(self, listener: Callable[[], None], part: PartOfNode | None = None) -> None:
        """Call `listener` when nodes are added, removed or listed again, and when this part of a node, by
        default the labels of the required keys, changes."""
        self._listeners.append((listener, part))

    def subscribe_names(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of each node of which a kept part changes, is added or removed."""
        self._name_listeners.append(listener)

    def subscribe_labels(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of each node whose kept labels change, or that is added or removed;
        not when nodes are listed again with more keys."""
        self._label_listeners.append(listener)

    def subscribe_lists(self, listener: Callable[[], None]) -> None:
        """Call `listener` when nodes are listed, or listed again with more keys."""
        self._list_listeners.append(listener)

    @property
    def synced(self) -> bool:
        """Whether nodes are listed, with the keys of an earlier list at least."""
        return self._listed is not None

    @property
    def problem(self) -> str:
        """Why the watch is interrupted, such as a missing RBAC permission; empty if it is not."""
        return self._reflector.problem if self._reflector is not None else ""

    @property
    def forbidden(self) -> bool:
        """Whether a missing RBAC permission interrupts the watch."""
        return self._reflector is not None and self._reflector.forbidden

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the labels that are listed."""
        return self._listed.keys if self._listed is not None else frozenset()

    def get(self, name: str) -> Node | None:
        """The node, or None."""
        return self._listed.cache.get("", name) if self._listed is not None else None

    def __iter__(self) -> Iterator[Node]:
        return iter(self._listed.cache if self._listed is not None else ())

    def labels(self, keys: Iterable[str]) -> tuple[Mapping[str, str], ...] | None:
        """The labels of every node; None if these keys are not listed yet."""
        if self._listed is None or not self._listed.keys.issuperset(keys):
            return None
        return tuple(node.metadata.labels for node in self._listed.cache)

    def labels_of(self, names: Iterable[str], keys: Iterable[str]) -> dict[str, Mapping[str, str]] | None:
        """The labels of the nodes of these names that exist; None if these keys are not listed yet."""
        if self._listed is None or not self._listed.keys.issuperset(keys):
            return None
        found = ((name, self.get(name)) for name in names)
        return {name: node.metadata.labels for name, node in found if node is not None}

    def unused(self, keys: Iterable[str]) -> frozenset[str]:
        """Those of the keys that no node has as a label; none of them while they are not listed, or there are
        no nodes."""
        if self._listed is None or not len(self._listed.cache):
            return frozenset()
        return frozenset(key for key in keys if key in self._listed.keys and not self._labelled[key])

    @property
    def needs_list(self) -> bool:
        """Whether labels are required that are not listed yet."""
        return self._more_required.is_set()

    def use_list(self, nodes: Iterable[Node]) -> None:
        """Use nodes that were listed elsewhere, with all labels that are required by now."""
        listing = self._new_list()
        listing.cache.replace(nodes, "")
        self._use(listing)

    async def run(self, client: Client) -> None:
        """Watch nodes as soon as they are required, until cancelled. The cache has dropped all other labels,
        so with more keys the nodes are listed again; until that is done, the former cache is read."""
        while True:
            await self._more_required.wait()
            listing = self._new_list()
            self._reflector = Reflector(client, listing.cache)
            watching = asyncio.create_task(self._reflector.run())
            try:
                await self._wait_for_sync_or_more_keys(listing.cache)
                if listing.cache.synced.is_set():
                    self._use(listing)
                await self._more_required.wait()
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    def _new_list(self) -> _Listed:
        """An empty cache for all keys that are required by now."""
        self._more_required.clear()
        keys = self._required_keys or frozenset()
        projection = node_projection(keys, self._fabric, placement=self._placement)
        return _Listed(Cache(NODES, Node, projection=projection), keys)

    async def _wait_for_sync_or_more_keys(self, cache: Cache[Node]) -> None:
        events = (cache.synced, self._more_required)
        waiting = {asyncio.create_task(event.wait()) for event in events}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def _use(self, listed: _Listed) -> None:
        """Read a cache that is synced in place of the former one."""
        names = {node.metadata.name for node in chain(self, listed.cache)}
        self._listed = listed
        self._labelled = Counter(chain.from_iterable(node.metadata.labels for node in listed.cache))
        listed.cache.subscribe(self._on_node)
        for listener, _ in self._listeners:
            listener()
        for on_list in self._list_listeners:
            on_list()
        for name in names:
            self._notify(name)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self._labelled.subtract(old.metadata.labels.keys() if old is not None else ())
        self._labelled.update(new.metadata.labels.keys() if new is not None else ())
        for listener, part in self._listeners:
            read = part or self._required_labels
            if old is None or new is None or read(old) != read(new):
                listener()
        found = new or old
        assert found is not None
        if old is None or new is None or _kept(old) != _kept(new):
            self._notify(found.metadata.name)
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            for on_labels in self._label_listeners:
                on_labels(found.metadata.name)

    def _notify(self, name: str) -> None:
        for listener in self._name_listeners:
            listener(name)

    def _required_labels(self, node: Node) -> object:
        return {key: value for key, value in node.metadata.labels.items() if key in self.keys}


class _Listed(Struct, frozen=True):
    """A cache of nodes, and the keys of the labels that it keeps."""

    cache: Cache[Node]
    keys: frozenset[str]


def _kept(node: Node) -> object:
    return node.metadata.uid, node.metadata.labels, node.spec, node.status


def node_projection(
    keys: frozenset[str], fabric: FabricDomainProvider | None, *, placement: bool = False
) -> Callable[[Node], Node]:
    """What is kept of a node: only what is read. Values keep the names that they have in the node, so another
    field is one line here."""
    keys = keys.union((fabric.domain_label, fabric.partition_label) if fabric is not None else ())

    @cache
    def counts(resource: str) -> bool:
        """Whether pods fit by this resource, or the vendor's accelerators are counted by it."""
        return placement or (fabric is not None and fabric.amount({resource: 1}) > 0)

    def project(node: Node) -> Node:
        meta, allocatable = node.metadata, node.status.allocatable
        labels = {key: value for key, value in meta.labels.items() if key in keys}
        return Node(
            ObjectMeta(meta.name, uid=meta.uid, resource_version=meta.resource_version, labels=labels),
            node.spec if placement else NodeSpec(),
            NodeStatus(
                {name: amount for name, amount in allocatable.items() if counts(name) and amount != "0"},
                _readiness(node) if placement else (),
            ),
        )

    return project


def _readiness(node: Node) -> tuple[PodCondition, ...]:
    """Whether a node is ready, without times and messages, which change when nothing else does."""
    return tuple(
        PodCondition(each.type, each.status) for each in node.status.conditions if each.type == "Ready"
    )
