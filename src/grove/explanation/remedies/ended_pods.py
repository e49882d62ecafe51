"""Which pods would have to end so that a gang fits: in the domain in which that costs least. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.explanation.model import ObjectRef
from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Amounts, Domain, NodeUse, Pod, Problem, Unit
from grove.topology.placement.solve import solve


class UsedBy(Struct, frozen=True):
    """A pod on a node, and what it uses."""

    pod: ObjectRef
    priority: int
    requests: Amounts
    gang: str = ""
    scaled: bool = False
    """Whether its gang scales out another one, which goes on without it."""
    same_set: bool = False
    """Whether it belongs to the set of the gang that waits."""
    bound: bool = True
    """False: it is only nominated, and uses nothing yet."""


PodsOn = Callable[[str], Iterable[UsedBy]]
"""The pods on a node, as far as they are known."""
ByNode = Mapping[str, list[UsedBy]]


class Ended(Struct, frozen=True):
    """Pods that end, and the nodes that the gang uses then."""

    pods: tuple[UsedBy, ...]
    nodes: tuple[str, ...]

    @property
    def cost(self) -> tuple[object, ...]:
        """The fewest pods first, then the fewest gangs, those that scale out others, and lower priorities."""
        gangs = {(each.pod.namespace, each.gang) for each in self.pods if each.gang}
        base = sum(bool(each.gang) and not each.scaled for each in self.pods)
        return len(self.pods), len(gangs), base, max(each.priority for each in self.pods), self.nodes


def fewest_ended(
    index: ClusterIndex, problem: Problem, pods_on: PodsOn, below: int, *, same_set: bool = False
) -> Ended | None:
    """The pods of a priority below this one that would have to end; None if that does not help. `same_set`:
    also those of the gang's own set. Only the domains with the most room are tried."""
    search = _Search(index, problem, pods_on, below, same_set)
    domains = _domains(index, problem.gang)
    found = [each for domain in domains[: timing.WHAT_IF_DOMAINS] if (each := search.within(domain))]
    if not found and domains != [CLUSTER]:
        found = [each for each in [search.within(CLUSTER)] if each]
    return min(found, key=lambda each: each.cost, default=None)


class _Search:
    def __init__(
        self, index: ClusterIndex, problem: Problem, pods_on: PodsOn, below: int, same_set: bool
    ) -> None:
        self._index, self._problem, self._below, self._same_set = index, problem, below, same_set
        self._pods_on = pods_on
        self._changed = ClusterIndex(index.levels, list(index), {n.name: index.use_of(n.name) for n in index})
        """The same cluster, in which pods end."""

    def within(self, domain: Domain) -> Ended | None:
        """The pods of one domain that would have to end: on as few nodes as possible."""
        names = (self._index.node(i).name for i in self._index.members.get(domain, ()))
        pods = {name: found for name in names if (found := self._may_end(name))}
        order = sorted(pods, key=lambda name: (_cost_of_node(pods[name]), name))
        answer = self._solve(domain, pods, order) if order else None
        if answer is None:
            return None
        too_few, enough = 0, len(order)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if (fewer := self._solve(domain, pods, order[:middle])) is None:
                too_few = middle
            else:
                answer, enough = fewer, middle
        needed = needed_by_node(self._problem, answer)
        ended = [each for node in needed for each in self._victims(node, needed[node], pods.get(node, []))]
        return Ended(tuple(ended), tuple(sorted(needed))) if ended else None

    def _may_end(self, node: str) -> list[UsedBy]:
        return [
            each
            for each in self._pods_on(node)
            if each.bound and each.priority < self._below and (self._same_set or not each.same_set)
        ]

    def _solve(self, domain: Domain, pods: ByNode, emptied: Iterable[str]) -> Placed | None:
        """The place of the gang in a domain if these pods of these nodes have ended."""
        nodes = tuple(emptied)
        for node in nodes:
            self._changed.set_use(node, _without(self._index.use_of(node), pods[node]))
        problem = replace(self._problem, within=domain, excluded={})
        answer = solve(self._changed, problem, timing.WHAT_IF_WORK, 0)
        for node in nodes:
            self._changed.set_use(node, self._index.use_of(node))
        return answer if isinstance(answer, Placed) else None

    def _victims(self, node: str, needed: Amounts, pods: list[UsedBy]) -> Iterator[UsedBy]:
        """Pods that must leave a node, those of the lowest priority and the largest first."""
        free = self._index.actual.free[self._index.ids[node]]
        missing = {
            resource: amount - free[d]
            for resource, amount in needed.items()
            if (d := self._index.dims.get(resource)) is not None and amount > free[d]
        }
        wanted = tuple(missing)
        for each in sorted(
            pods, key=lambda pod: (pod.priority, -sum(pod.requests.get(r, 0) for r in wanted))
        ):
            if any(missing[resource] > 0 and each.requests.get(resource) for resource in missing):
                yield each
                missing = {r: amount - each.requests.get(r, 0) for r, amount in missing.items()}


def needed_by_node(problem: Problem, answer: Placed) -> dict[str, dict[str, int]]:
    """What the pods of a gang that have no node yet need on each node."""
    requests = {pod.name: pod.shape.requests for pod in pods_of(problem.gang) if not pod.node}
    found: dict[str, Counter[str]] = {}
    for name, node in answer.nodes.items():
        if name in requests:
            found.setdefault(node, Counter()).update(requests[name])
    return {node: dict(amounts) for node, amounts in found.items()}


def pods_of(unit: Unit) -> Iterator[Pod]:
    """All pods of a gang."""
    yield from unit.pods
    for part in unit.parts:
        yield from pods_of(part)


def _cost_of_node(pods: list[UsedBy]) -> tuple[int, ...]:
    base = sum(bool(each.gang) and not each.scaled for each in pods)
    return len(pods), base, max(each.priority for each in pods)


def _without(use: NodeUse, pods: Iterable[UsedBy]) -> NodeUse:
    """What is taken of a node once pods have ended."""
    left = {priority: dict(amounts) for priority, amounts in use.by_priority.items()}
    for each in pods:
        of_priority = left.get(each.priority, {})
        for resource in of_priority.keys() & each.requests.keys():
            of_priority[resource] = max(0, of_priority[resource] - each.requests[resource])
    return NodeUse(left, use.reserved)


def _domains(index: ClusterIndex, gang: Unit) -> list[Domain]:
    """The domains of the required level, those with the most room first."""
    if gang.required not in index.levels:
        return [CLUSTER]
    needs: Counter[str] = Counter()
    for pod in pods_of(gang):
        needs.update({} if pod.node else pod.shape.requests)

    def room(domain: Domain) -> float:
        sums = index.actual.sums.get(domain)
        shares = (sums[index.dims[n]] / a for n, a in needs.items() if sums and a and n in index.dims)
        return min(shares, default=0.0)

    found = index.subdomains(CLUSTER, index.levels.index(gang.required))
    return sorted(found, key=lambda each: (-room(each), each))
