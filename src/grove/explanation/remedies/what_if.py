"""Changes of the cluster after which a gang fits, each tried with the solver. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from grove import timing
from grove.api.naming.well_known import HOSTNAME
from grove.explanation.domains import closest_domain, main_class
from grove.explanation.model import Holder, Remedy
from grove.explanation.remedies.ended_pods import PodsOn, fewest_ended, pods_of
from grove.topology.placement.answers import NoFit, Placed
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Domain, Node, Problem
from grove.topology.placement.solve import solve
from grove.topology.placement.units import Compiler

_ANY_PRIORITY = 2**31
"""Above the priority of every pod."""


def remedies(
    index: ClusterIndex, problem: Problem, answer: NoFit, priority: int, pods_on: PodsOn
) -> Iterator[Remedy]:
    """What would make room, the smallest changes first. Nothing is said about changes that do not help."""
    what_if = _WhatIf(index, problem, pods_on)
    yield from what_if.nodes_as("uncordon", "uncordon", _uncordoned)
    yield from what_if.nodes_as("repair", "make ready", _made_ready)
    for key in what_if.refusing_taints():
        verb = f"tolerate taint {key}, or remove it from"
        yield from what_if.nodes_as("removeTaint", verb, partial(_without_taint, key))
    found = list(what_if.ended_pods(priority))
    yield from found
    yield from what_if.wider_level()
    if not found:
        yield from what_if.ended_pods(_ANY_PRIORITY)
    yield from what_if.more_nodes(answer)


class _WhatIf:
    def __init__(self, index: ClusterIndex, problem: Problem, pods_on: PodsOn) -> None:
        self._index, self._problem, self._pods_on = index, problem, pods_on
        self._nodes = list(index)

    def nodes_as(self, action: str, verb: str, changed: Callable[[Node], Node]) -> Iterator[Remedy]:
        """Whether the gang fits if nodes were different, and which of them it would use."""
        nodes = [changed(node) for node in self._nodes]
        affected = {new.name for new, old in zip(nodes, self._nodes, strict=True) if new != old}
        answer = self._solve(self._copy(nodes), self._problem) if affected else None
        if answer is not None and (used := sorted(affected & set(answer.nodes.values()))):
            yield Remedy(action, f"{verb} {_some(used)}", tuple(used))

    def refusing_taints(self) -> list[str]:
        """The keys of taints that keep the pods of the gang out."""
        found = set()
        for shape in {id(pod.shape): pod.shape for pod in pods_of(self._problem.gang)}.values():
            for node in self._nodes:
                why = rejection(shape, replace(node, ready=True, unschedulable=False))
                found |= {why[1]} if why is not None and why[0].value == "Taint" else set()
        return sorted(found)

    def ended_pods(self, below: int) -> Iterator[Remedy]:
        """Which pods of a lower priority would have to end; of the gang's own set only if no others help."""
        found = fewest_ended(self._index, self._problem, self._pods_on, below)
        if found is None and below >= _ANY_PRIORITY:
            found = fewest_ended(self._index, self._problem, self._pods_on, below, same_set=True)
        if found is None:
            return
        names = tuple(each.pod for each in found.pods)
        lower = below < _ANY_PRIORITY
        some = _some([f"{each.namespace}/{each.name}" for each in names])
        text = f"{end_pods(len(names), lower_priority=lower)}: {some}"
        yield Remedy("endPods", text, found.nodes, names, lower_priority=lower)

    def wider_level(self) -> Iterator[Remedy]:
        """Whether the gang fits if its required level were a wider one."""
        gang, levels = self._problem.gang, self._index.levels
        if gang.required not in levels:
            return
        for level in reversed(levels[: levels.index(gang.required)]):
            if self._solve(self._index, replace(self._problem, gang=replace(gang, required=level))):
                name, wanted = _level(level), _level(gang.required)
                yield Remedy("widenLevel", f"require one {name} instead of one {wanted}")
                return

    def more_nodes(self, answer: NoFit) -> Iterator[Remedy]:
        """How many more nodes, like one that is there, the gang fits with."""
        domain = closest_domain(answer)
        unit = Compiler(self._index).compile(self._problem.gang)
        main = main_class(unit)
        if main is None:
            return
        model = self._model_node(domain, lambda node: rejection(main.shape, node) is None)
        if model is None or not (slots := main.slots(self._index.empty.free[self._index.ids[model.name]])):
            return
        members = self._index.members.get(domain, ())
        room = sum(main.slots(self._index.actual.free[i]) for i in members if main.eligible(i))
        least = max(1, math.ceil((unit.totals[main] - room) / slots))
        for count in dict.fromkeys((least, least + 1, least + 2, 2 * least, 4 * least)):
            if count <= timing.NODES_TO_ADD and self._fits_with(model, count):
                more = f"{count} more node{'s' * (count != 1)} like {model.name}"
                yield Remedy("addNodes", f"add {more}", (model.name,), count=count)
                return

    def _model_node(self, domain: Domain, admits: Callable[[Node], bool]) -> Node | None:
        """A node of the domain that the pods may use, or else one of the whole cluster."""
        for members in (self._index.members.get(domain, ()), self._index.members.get((), ())):
            for i in members:
                node = replace(self._index.node(i), ready=True, unschedulable=False)
                if admits(node):
                    return node
        return None

    def _fits_with(self, model: Node, count: int) -> bool:
        names = (f"{model.name} (new {number})" for number in range(1, count + 1))
        new = (
            replace(
                model,
                name=name,
                labels={**model.labels, **({HOSTNAME: name} if HOSTNAME in model.labels else {})},
            )
            for name in names
        )
        return self._solve(self._copy((*self._nodes, *new)), self._problem) is not None

    def _copy(self, nodes: Iterable[Node]) -> ClusterIndex:
        found = list(nodes)
        return ClusterIndex(
            self._index.levels, found, {each.name: self._index.use_of(each.name) for each in found}
        )

    def _solve(self, index: ClusterIndex, problem: Problem) -> Placed | None:
        answer = solve(index, replace(problem, excluded={}), timing.WHAT_IF_WORK, 0)
        return answer if isinstance(answer, Placed) else None


def end_pods(count: int, *, lower_priority: bool) -> str:
    """How many pods must end, in words."""
    return f"end {count} pod{'s' * (count != 1)}{' of a lower priority' * lower_priority}"


def _uncordoned(node: Node) -> Node:
    return replace(node, unschedulable=False) if node.unschedulable else node


def _made_ready(node: Node) -> Node:
    return node if node.ready else replace(node, ready=True)


def _without_taint(key: str, node: Node) -> Node:
    kept = tuple(each for each in node.taints if each.key != key)
    return replace(node, taints=kept) if len(kept) < len(node.taints) else node


def holders(index: ClusterIndex, domain: Domain, resource: str, pods_on: PodsOn) -> list[Holder]:
    """The pods in a domain that use a resource, those that use most first."""
    found = [
        Holder(each.pod, node, resource, amount, each.priority, each.gang)
        for i in index.members.get(domain, ())
        for node in [index.node(i).name]
        for each in pods_on(node)
        if (amount := each.requests.get(resource, 0))
    ]
    return sorted(found, key=lambda each: (-each.amount, each.node, each.pod.namespace, each.pod.name))


def _some(names: list[str]) -> str:
    shown = ", ".join(names[: timing.NAMES_SHOWN])
    more = len(names) - timing.NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _level(key: str) -> str:
    return key.rpartition("/")[2]
