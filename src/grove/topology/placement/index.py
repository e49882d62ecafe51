"""The nodes of a cluster by domain, with what is free on them. It is kept between gangs and changed node by
node; the solver only reads it.

A `View` is one way to count use: all of it, none of it, or without pods of lower priorities.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from grove.topology.placement.membership import domain_path
from grove.topology.placement.model import CLUSTER, FABRIC_POD, Amounts, Domain, Node, NodeUse

Vector = tuple[int, ...]
Key = TypeVar("Key")

_NO_USE = NodeUse()


class View:
    """What is free on each node, and sums of it by domain."""

    def __init__(self) -> None:
        self.free: list[Vector] = []
        self.busy_nodes: list[bool] = []
        self.sums: dict[Domain, list[int]] = {}
        """Free amounts of all ready nodes of a domain; over-committed nodes count as full."""
        self.busy: dict[Domain, int] = {}
        """How many nodes of a domain are in use; a domain without any is whole."""

    def copy(self) -> View:
        view = View()
        view.free, view.busy_nodes = self.free.copy(), self.busy_nodes.copy()
        view.sums = {domain: sums.copy() for domain, sums in self.sums.items()}
        view.busy = self.busy.copy()
        return view

    def append(self) -> None:
        self.free.append(())
        self.busy_nodes.append(False)

    def set(self, i: int, free: Vector, busy: bool) -> None:
        self.free[i], self.busy_nodes[i] = free, busy

    def count(self, i: int, domains: Iterable[Domain], counted: bool, sign: int) -> None:
        """Add node i to the sums of its domains, or subtract it."""
        free, busy = self.free[i], sign * self.busy_nodes[i]
        for domain in domains:
            if busy:
                self.busy[domain] = self.busy.get(domain, 0) + busy
            if counted:
                sums = self.sums.get(domain)
                if sums is None:
                    sums = self.sums[domain] = [0] * len(free)
                for d, amount in enumerate(free):
                    if amount > 0:
                        sums[d] += sign * amount


class ClusterIndex:
    """Nodes and use by the levels of one topology, label keys from broad to narrow."""

    def __init__(
        self, levels: tuple[str, ...], nodes: Iterable[Node] = (), use: Mapping[str, NodeUse] | None = None
    ) -> None:
        self.levels = levels
        self.dims: dict[str, int] = {}
        """By resource, its position in vectors of amounts."""
        self.extended: list[bool] = []
        """By position, whether a node counts as in use if this is used: CPU and memory of daemons do not."""
        self.nodes: list[Node | None] = []
        self.ids: dict[str, int] = {}
        self.paths: list[Domain] = []
        """By node, the values of all levels; empty from the first missing label on."""
        self.domains_of: list[tuple[Domain, ...]] = []
        self.plain: list[bool] = []
        """By node, whether it has no accelerators, so that any pod makes it busy."""
        self.members: dict[Domain, list[int]] = {CLUSTER: []}
        """The nodes of a domain, by name."""
        self.children: dict[Domain, dict[Domain, int]] = {}
        """By domain, the next narrower ones, with how many nodes each has."""
        self.direct: dict[Domain, list[int]] = {}
        """The nodes of a domain that lie in no narrower one, by name."""
        self.profiles: list[int] = []
        """By node, a number that nodes with equal taints, readiness and cordon share."""
        self.actual, self.empty = View(), View()
        self._profiles: dict[object, int] = {}
        self._inside: dict[tuple[Domain, int], dict[Domain, int]] = {}
        self._nodes_at = [0] * len(levels)
        """By level, how many nodes lie in its domains."""
        self._use: list[NodeUse] = []
        self._unused_ids: list[int] = []
        self._names: list[str] = []
        for node in sorted(nodes, key=lambda each: each.name):
            self.set_node(node, (use or {}).get(node.name, _NO_USE))

    def set_node(self, node: Node, use: NodeUse | None = None) -> None:
        """Add a node, or replace it after any change."""
        i = self.ids.get(node.name)
        if i is None:
            i = self._new_id(node.name)
        else:
            use = use or self._use[i]
            self._leave(i)
        self.nodes[i], self._use[i] = node, use or _NO_USE
        self._join(i)

    def set_use(self, name: str, use: NodeUse) -> None:
        """Replace what is taken of a node; without effect for a node that is not known."""
        i = self.ids.get(name)
        if i is None:
            return
        node, domains = self.nodes[i], self.domains_of[i]
        assert node is not None
        self.actual.count(i, domains, node.ready, -1)
        self._use[i] = use
        self._set_actual(i, node)
        self.actual.count(i, domains, node.ready, 1)

    def remove_node(self, name: str) -> None:
        i = self.ids.pop(name, None)
        if i is not None:
            self._leave(i)
            self.nodes[i], self._use[i] = None, _NO_USE
            self._unused_ids.append(i)

    def use_of(self, name: str) -> NodeUse:
        i = self.ids.get(name)
        return _NO_USE if i is None else self._use[i]

    def __iter__(self) -> Iterator[Node]:
        return (node for node in self.nodes if node is not None)

    def node(self, i: int) -> Node:
        found = self.nodes[i]
        assert found is not None
        return found

    def subdomains(self, domain: Domain, level: int) -> Iterable[Domain]:
        """The domains of a level that lie in a domain: itself, if it is one of them."""
        if len(domain) - 1 == level:
            return (domain,)
        return self._inside.get((domain, level), ())

    def domain_at(self, i: int, level: int) -> Domain | None:
        """The domain of a level that node i lies in."""
        path = self.paths[i]
        return path[: level + 1] if path[level] else None

    def narrower_labels(self, level: int) -> tuple[str, ...]:
        """The labels of narrower levels that nodes in domains of a level must have to belong to the topology.
        Empty if all of them do."""
        counts = self._nodes_at[level:]
        carried = [number for number, count in enumerate(counts) if count]
        if not carried or counts[carried[-1]] == counts[0]:
            return ()
        return self.levels[level + 1 : level + 1 + carried[-1]]

    def view_without(self, priority: int | None, vacated: Collection[str] = ()) -> View:
        """A view in which pods of lower priorities are gone, and all pods of some nodes. Where other gangs
        have reservations, no pod is preempted: until it has left, another nomination there would keep the
        pods of these gangs out. Only nodes with such pods are counted again."""
        view = self.actual.copy()
        names = vacated if priority is None else self.ids
        for i in (self.ids[name] for name in names if name in self.ids):
            node, use = self.node(i), self._use[i]
            gone = node.name in vacated
            kept = [
                amounts
                for each, amounts in use.by_priority.items()
                if not gone and (priority is None or each >= priority or use.reserved)
            ]
            if len(kept) < len(use.by_priority):
                view.count(i, self.domains_of[i], node.ready, -1)
                self._fill(view, i, node, (*kept, use.reserved))
                view.count(i, self.domains_of[i], node.ready, 1)
        return view

    def free_without_reservations(self, i: int) -> Vector:
        """What would be free on a node without the reservations of other gangs."""
        use = self._use[i]
        if not use.reserved:
            return self.actual.free[i]
        return self._vector(self.node(i), tuple(use.by_priority.values()))

    def request(self, requests: Amounts, fabric: bool) -> tuple[tuple[int, int], ...] | str:
        """Requests as positions and amounts, zeros left out; the name of a resource that no node has."""
        wanted = {**requests, FABRIC_POD: 1} if fabric else requests
        pairs = []
        for name, amount in wanted.items():
            if amount > 0:
                if name not in self.dims:
                    return name
                pairs.append((self.dims[name], amount))
        # Scarce resources first: where one is missing, the others need not be looked at.
        return tuple(sorted(pairs, key=lambda pair: (not self.extended[pair[0]], pair)))

    def _new_id(self, name: str) -> int:
        if self._unused_ids:
            i = self._unused_ids.pop()
        else:
            i = len(self.nodes)
            self.nodes.append(None)
            self._use.append(_NO_USE)
            self._names.append("")
            self.paths.append(())
            self.domains_of.append(())
            self.plain.append(True)
            self.profiles.append(0)
            self.actual.append()
            self.empty.append()
        self.ids[name], self._names[i] = i, name
        return i

    def _join(self, i: int) -> None:
        node = self.node(i)
        path = domain_path(node.labels, self.levels)
        domains = (CLUSTER, *(path[: level + 1] for level, value in enumerate(path) if value))
        self.paths[i], self.domains_of[i], self.plain[i] = path, domains, not _has_extended(node)
        profile = (node.taints, node.ready, node.unschedulable)
        self.profiles[i] = self._profiles.setdefault(profile, len(self._profiles))
        for domain in domains:
            self._insert(self.members.setdefault(domain, []), i)
        self._insert(self.direct.setdefault(domains[-1], []), i)
        self._count_inside(domains, 1)
        self._set_actual(i, node)
        self._fill(self.empty, i, node, ())
        for view in (self.actual, self.empty):
            view.count(i, domains, node.ready, 1)

    def _leave(self, i: int) -> None:
        node, domains = self.node(i), self.domains_of[i]
        for view in (self.actual, self.empty):
            view.count(i, domains, node.ready, -1)
        self.direct[domains[-1]].remove(i)
        self._count_inside(domains, -1)
        for domain in domains:
            self.members[domain].remove(i)
            if domain and not self.members[domain]:
                del self.members[domain]
                self.direct.pop(domain, None)
                for view in (self.actual, self.empty):
                    view.sums.pop(domain, None)
                    view.busy.pop(domain, None)

    def _insert(self, members: list[int], i: int) -> None:
        if members and self._names[members[-1]] > self._names[i]:
            insort(members, i, key=self._names.__getitem__)
        else:
            members.append(i)

    def _count_inside(self, domains: tuple[Domain, ...], change: int) -> None:
        """Count a node for each pair of its domains."""
        for outer, inner in pairwise(domains):
            _add(self.children, outer, inner, change)
        for number, inner in enumerate(domains):
            if inner:
                self._nodes_at[len(inner) - 1] += change
            for outer in domains[:number]:
                _add(self._inside, (outer, len(inner) - 1), inner, change)

    def _set_actual(self, i: int, node: Node) -> None:
        use = self._use[i]
        self._fill(self.actual, i, node, (*use.by_priority.values(), use.reserved))

    def _fill(self, view: View, i: int, node: Node, used: tuple[Amounts, ...]) -> None:
        view.set(i, self._vector(node, used), _is_busy(node, used))

    def _vector(self, node: Node, used: tuple[Amounts, ...]) -> Vector:
        amounts = {FABRIC_POD: 1, **node.allocatable}
        if not self.dims.keys() >= amounts.keys():
            self._add_resources(amounts)
        free = [0] * len(self.dims)
        for name, amount in amounts.items():
            free[self.dims[name]] = amount
        for each in used:
            for name, amount in each.items():
                if name in amounts:
                    free[self.dims[name]] -= amount
        return tuple(free)

    def _add_resources(self, names: Iterable[str]) -> None:
        """Make all vectors longer: a new resource is rare."""
        for name in names:
            if name not in self.dims:
                self.dims[name] = len(self.dims)
                self.extended.append(is_extended(name))
        for view in (self.actual, self.empty):
            view.free = [free + (0,) * (len(self.dims) - len(free)) for free in view.free]
            for sums in view.sums.values():
                sums.extend([0] * (len(self.dims) - len(sums)))


def is_extended(resource: str) -> bool:
    """Whether a resource is a vendor's, such as GPUs, or a device class."""
    return "/" in resource


def _add(counts: dict[Key, dict[Domain, int]], key: Key, domain: Domain, change: int) -> None:
    """Change a count; what is counted 0 times is left out."""
    inner = counts.setdefault(key, {})
    inner[domain] = inner.get(domain, 0) + change
    if not inner[domain]:
        del inner[domain]
        if not inner:
            del counts[key]


def _is_busy(node: Node, used: tuple[Amounts, ...]) -> bool:
    """Whether a node is in use: its accelerators, or anything if it has none."""
    plain = not _has_extended(node)
    return any(
        amount > 0 and (plain or is_extended(name)) for amounts in used for name, amount in amounts.items()
    )


def _has_extended(node: Node) -> bool:
    return any(amount > 0 and is_extended(name) for name, amount in node.allocatable.items())
