"""The nodes of the cluster with what is taken of them: use by bound pods, and reservations for gangs whose
pods are not bound yet. Only the pass over the placement key reads and changes it.

Reservations change many times in a round, and most changes are taken back before a search reads them. So the
indexes take them over when they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from grove.plan.placement.assignment import GangName
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Amounts, Node, NodeUse

UseByPriority = Mapping[int, Amounts]


class ObservedNode(Struct, frozen=True):
    """A node that has changed; without `node` it was removed."""

    node: Node | None
    use: UseByPriority = {}


class ClusterCapacity:
    """One index for each list of levels that gangs ask with, all with the same nodes and reservations."""

    def __init__(self) -> None:
        self._nodes: dict[str, ObservedNode] = {}
        self._priorities: Counter[int] = Counter()
        """On how many nodes pods of each priority are."""
        self._indexes: dict[tuple[str, ...], ClusterIndex] = {}
        self._by_node: dict[str, dict[GangName, Amounts]] = {}
        self._by_gang: dict[GangName, Mapping[str, Amounts]] = {}
        self._outdated: set[str] = set()
        """The nodes whose reservations have changed since the indexes were read."""
        self._hashes: dict[GangName, int] = {}
        self._sum_of_hashes = 0
        self._observations = 0
        self._freed = False

    def observe(self, changed: Mapping[str, ObservedNode]) -> bool:
        """Take over nodes that have changed. Returns whether more may be free now than in the last round."""
        freed = self._freed or any(_has_more(self._nodes.get(name), each) for name, each in changed.items())
        self._freed = False
        self._observations += bool(changed)
        for name, observed in changed.items():
            if (before := self._nodes.get(name)) is not None:
                self._priorities.subtract(before.use.keys())
            if observed.node is None:
                self._nodes.pop(name, None)
                for index in self._indexes.values():
                    index.remove_node(name)
                continue
            self._nodes[name] = observed
            self._priorities.update(observed.use.keys())
            for index in self._indexes.values():
                index.set_node(observed.node, self._use(name))
        return freed

    def mark_freed(self) -> None:
        """A gang has given up nodes after others were decided on: these are decided on again."""
        self._freed = True

    @property
    def fingerprint(self) -> tuple[int, int]:
        """Equal for equal nodes and reservations: a search has the same answer, also if reservations were
        changed and restored in between."""
        return self._observations, self._sum_of_hashes

    def preemption_limit(self, priority: int) -> int | None:
        """From which priority on pods are not preempted by a pod of this priority, the same number for all
        priorities that preempt the same pods. None: there is no pod of a lower priority."""
        used = [each for each, nodes in self._priorities.items() if nodes]
        if not any(each < priority for each in used):
            return None
        return min((each for each in used if each >= priority), default=max(used) + 1)

    def index(self, levels: tuple[str, ...]) -> ClusterIndex:
        """The nodes by these levels. Gangs without levels use any index: they fit everywhere or nowhere."""
        for name in self._outdated:
            use = self._use(name)
            for index in self._indexes.values():
                if index.use_of(name) != use:
                    index.set_use(name, use)
        self._outdated.clear()
        return self.domains(levels)

    def domains(self, levels: tuple[str, ...]) -> ClusterIndex:
        """The same where only nodes and their domains are read: what is free may be outdated."""
        if not levels and self._indexes:
            return next(iter(self._indexes.values()))
        found = self._indexes.get(levels)
        if found is None:
            nodes = [observed.node for observed in self._nodes.values() if observed.node is not None]
            found = ClusterIndex(levels, nodes, {node.name: self._use(node.name) for node in nodes})
            self._indexes[levels] = found
        return found

    def reserve(self, gang: GangName, amounts: Mapping[str, Amounts]) -> None:
        """Replace the reservations of a gang: amounts by node."""
        before = self._by_gang.get(gang, {})
        if before == amounts:
            return
        for name in before:
            of_node = self._by_node[name]
            del of_node[gang]
            if not of_node:
                del self._by_node[name]
        for name, each in amounts.items():
            self._by_node.setdefault(name, {})[gang] = each
        self._outdated.update(before, amounts)
        self._by_gang.pop(gang, None)
        self._sum_of_hashes -= self._hashes.pop(gang, 0)
        if amounts:
            self._by_gang[gang] = amounts
            self._hashes[gang] = _hash(gang, amounts)
            self._sum_of_hashes += self._hashes[gang]

    def reserved_for(self, node: str) -> Collection[GangName]:
        """The gangs for which something of a node is reserved."""
        return self._by_node.get(node, {}).keys()

    @contextmanager
    def without(self, gangs: Iterable[GangName]) -> Iterator[None]:
        """Without the reservations of some gangs for a while."""
        kept = {gang: amounts for gang in gangs if (amounts := self._by_gang.get(gang))}
        for gang in kept:
            self.reserve(gang, {})
        try:
            yield
        finally:
            for gang, amounts in kept.items():
                self.reserve(gang, amounts)

    def over_committed(
        self,
        gang: GangName,
        usable: Callable[[Node], bool],
        preempts_below: int | None = None,
        *,
        if_vacated: bool = False,
    ) -> str:
        """A node that has no room for what is reserved for a gang, or that it cannot use any more; empty if
        there is none. Pods of a priority below `preempts_below` are not counted. `if_vacated`: only the
        reservations of other gangs are in its way."""
        return next(self._over_committed(gang, usable, preempts_below, if_vacated), "")

    def occupied(self, gang: GangName) -> frozenset[str]:
        """The nodes that have no room yet for what is reserved for a gang."""
        return frozenset(self._over_committed(gang, lambda _: True, None, False))

    def _over_committed(
        self, gang: GangName, usable: Callable[[Node], bool], preempts_below: int | None, if_vacated: bool
    ) -> Iterator[str]:
        for name in self._by_gang.get(gang, ()):
            observed = self._nodes.get(name)
            if observed is None or observed.node is None or not usable(observed.node):
                yield name
                continue
            use, free = self._use(name), dict(observed.node.allocatable)
            staying = (
                taken
                for priority, taken in use.by_priority.items()
                if not if_vacated and (preempts_below is None or priority >= preempts_below)
            )
            for taken in (*staying, use.reserved):
                for resource, amount in taken.items():
                    free[resource] = free.get(resource, 0) - amount
            if any(free[resource] < 0 for resource in self._by_node[name][gang]):
                yield name

    def can_hold(self, gang: GangName, usable: Callable[[Node], bool]) -> bool:
        """Whether the nodes that are reserved for a gang could be used by it once they are empty."""
        return not self.over_committed(gang, usable, if_vacated=True)

    def _use(self, name: str) -> NodeUse:
        observed = self._nodes.get(name)
        reserved: dict[str, int] = {}
        for amounts in self._by_node.get(name, {}).values():
            for resource, amount in amounts.items():
                reserved[resource] = reserved.get(resource, 0) + amount
        return NodeUse(observed.use if observed is not None else {}, reserved)


def _hash(gang: GangName, amounts: Mapping[str, Amounts]) -> int:
    return hash((gang, frozenset((node, frozenset(each.items())) for node, each in amounts.items())))


def _has_more(before: ObservedNode | None, after: ObservedNode) -> bool:
    """Whether a node may have room that it did not have before: it is another one, or less of it is used."""
    if before is None or before.node != after.node:
        return after.node is not None
    return any(
        after.use.get(priority, {}).get(resource, 0) < amount
        for priority, used in before.use.items()
        for resource, amount in used.items()
    )
