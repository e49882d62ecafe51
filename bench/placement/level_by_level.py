"""Two simple algorithms for gangs of equal pods, to compare with.

First fit takes the first domain and the first nodes by name. Best fit works level by level, as Kueue's
topology-aware scheduling does by default (BestFit; LeastFreeCapacity is for workloads without any level,
which there are none of here). It counts for each domain how many pods fit, and takes the domain of the wanted
level that has the least room of those that hold all. If there is none, a preferred level is given up for the
next broader one. From there it goes down: at each level it looks at the inner domains of all that are chosen,
takes the ones with the most room, and for the last pods the one with the least room that holds them.

Kueue knows either a required or a preferred level; here a preferred level is given up as far as the required
one. Where no domain of the broadest level holds all, Kueue takes several of them, as here the cluster.
"""

from __future__ import annotations

from typing import TypeVar

from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain, PodShape
from grove.topology.placement.units import PodClass

T = TypeVar("T")


def first_fit(index: ClusterIndex, shape: PodShape, count: int, required: str) -> list[str] | None:
    pod_class = PodClass(0, shape, index)
    level = index.levels.index(required) if required else -1
    domains = sorted(index.subdomains(CLUSTER, level)) if required else [CLUSTER]
    for domain in domains:
        chosen: list[str] = []
        for i in index.members[domain]:
            chosen += [index.node(i).name] * min(count - len(chosen), _slots(index, pod_class, i))
            if len(chosen) == count:
                return chosen
    return None


def best_fit(
    index: ClusterIndex, shape: PodShape, count: int, required: str, preferred: str
) -> list[str] | None:
    room = _Room(index, PodClass(0, shape, index))
    widest = index.levels.index(required) if required else -1
    wanted = index.levels.index(preferred) if preferred else widest
    for level in range(max(wanted, widest), widest - 1, -1):
        domains = index.subdomains(CLUSTER, level) if level >= 0 else [CLUSTER]
        holding = [(room.of(domain), domain) for domain in domains if room.of(domain) >= count]
        if holding:
            return _descend(index, room, min(holding)[1], count)
    return None


class _Room:
    """How many pods fit into a domain."""

    def __init__(self, index: ClusterIndex, pod_class: PodClass) -> None:
        self._index, self._pod_class = index, pod_class
        self._known: dict[Domain, int] = {}

    def node(self, i: int) -> int:
        return _slots(self._index, self._pod_class, i)

    def of(self, domain: Domain) -> int:
        if domain not in self._known:
            self._known[domain] = sum(self.node(i) for i in self._index.members[domain])
        return self._known[domain]


def _descend(index: ClusterIndex, room: _Room, domain: Domain, count: int) -> list[str]:
    """From a domain that holds all pods to narrower ones, and finally to nodes."""
    chosen = [domain]
    for level in range(len(domain), len(index.levels)):
        inner = {each: room.of(each) for outer in chosen for each in index.subdomains(outer, level)}
        chosen = list(_fewest(inner, count))
    nodes = {i: room.node(i) for each in chosen for i in index.members[each]}
    return [index.node(i).name for i, taken in _fewest(nodes, count).items() for _ in range(taken)]


def _fewest(rooms: dict[T, int], count: int) -> dict[T, int]:
    """The largest first, as few as possible; the last is the smallest that holds the rest."""
    found: dict[T, int] = {}
    left = dict(rooms)
    while count:
        holding = [(room, number, key) for number, (key, room) in enumerate(left.items()) if room >= count]
        if holding:
            found[min(holding)[2]] = count
            return found
        key = max(left, key=lambda each: left[each])
        room = left[key]
        found[key] = room
        del left[key]
        count -= room
    return found


def _slots(index: ClusterIndex, pod_class: PodClass, i: int) -> int:
    return pod_class.slots(index.actual.free[i]) if pod_class.eligible(i) else 0
