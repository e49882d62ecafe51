"""The definition of the solver's objective, computed by trying every assignment of pods to nodes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from grove.topology.placement.answers import Objective
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.model import Node, NodeUse, Pod, Problem, Unit

Assignment = dict[str, str]
Cluster = tuple[tuple[str, ...], list[Node], dict[str, NodeUse]]


def brute_force(cluster: Cluster, problem: Problem) -> Objective | None:
    """The best objective of all placements; None if there is none."""
    found = brute_force_in_partitions(cluster, problem)
    return None if found is None else found[1]


def brute_force_in_partitions(cluster: Cluster, problem: Problem) -> tuple[tuple[int, ...], Objective] | None:
    """How far preferred partitions are met at best, earlier ones first, and the best objective with that."""
    levels, nodes, use = cluster
    pods = [pod for pod in pods_of(problem.gang) if not pod.extra]
    choices = [_possible(pod, nodes) for pod in pods]
    best = None
    for chosen in itertools.product(*choices):
        assignment = {pod.name: node for pod, node in zip(pods, chosen, strict=True)}
        if _is_possible(cluster, problem, assignment):
            found = (
                unmet_partitions(cluster, problem, assignment),
                objective(levels, nodes, use, problem.gang, assignment),
            )
            best = found if best is None else min(best, found)
    return best


def unmet_partitions(cluster: Cluster, problem: Problem, assignment: Assignment) -> tuple[int, ...]:
    """By partition: 0 if all of its pods have the value of those that are placed already, or one value if
    there are none; 1 if they have another value in common; 2 if they have none."""
    labels = {node.name: node.labels for node in cluster[1]}
    found = []
    for number, partition in enumerate(problem.partitions):
        new = [
            pod
            for pod in pods_of(problem.gang)
            if number in pod.shape.partitions and not pod.node and not pod.extra
        ]
        values = {labels[assignment[pod.name]].get(partition.key, "") for pod in new}
        if not values or (len(values) == 1 and values <= {partition.value or next(iter(values))} - {""}):
            found.append(0)
        else:
            found.append(1 if len(values) == 1 and "" not in values else 2)
    return tuple(found)


def is_valid(cluster: Cluster, problem: Problem, assignment: Assignment) -> bool:
    """Whether an assignment keeps to capacity, selectors and required levels. It may place extra pods."""
    pods = [pod for pod in pods_of(problem.gang) if pod.name in assignment]
    admitted = all(assignment[pod.name] in _possible(pod, cluster[1]) for pod in pods)
    return admitted and _is_possible(cluster, problem, assignment)


def _is_possible(cluster: Cluster, problem: Problem, assignment: Assignment) -> bool:
    """The same, if selectors are known to match."""
    levels, nodes, use = cluster
    by_name = {node.name: node for node in nodes}
    free = [pod for pod in pods_of(problem.gang) if pod.name in assignment and not pod.node]
    within = problem.within
    if any(_path(by_name[assignment[p.name]], levels)[: len(within)] != within for p in free):
        return False
    for node in nodes:
        own = [pod for pod in free if assignment[pod.name] == node.name]
        if own and not _fits(node, use.get(node.name, NodeUse()), own):
            return False
    unmet = unmet_partitions(cluster, problem, assignment)
    if any(each.required and unmet[number] for number, each in enumerate(problem.partitions)):
        return False
    return all(_in_one_domain(unit, cluster, assignment) for unit in units_of(problem.gang) if unit.required)


def _in_one_domain(unit: Unit, cluster: Cluster, assignment: Assignment) -> bool:
    """Whether new pods share a domain, and one with bound pods. Bound pods themselves may be anywhere."""
    levels, nodes, _ = cluster
    level = levels.index(unit.required)
    domain_of = {node.name: _domain(node, levels, level) for node in nodes}
    pods = [pod for pod in pods_of(unit) if pod.name in assignment]
    new = {domain_of[assignment[pod.name]] for pod in pods if not pod.node}
    bound = {domain_of[pod.node] for pod in pods if pod.node} - {None}
    return len(new) <= 1 and None not in new and (not bound or new <= bound)


def objective(
    levels: tuple[str, ...], nodes: list[Node], use: dict[str, NodeUse], gang: Unit, assignment: Assignment
) -> Objective:
    by_name = {node.name: node for node in nodes}
    shares = []
    for unit in units_of(gang):
        pods = [pod for pod in pods_of(unit) if not pod.extra]
        if unit.preferred and pods:
            level = levels.index(unit.preferred)
            counts = Counter(_domain(by_name[assignment[p.name]], levels, level) for p in pods)
            del counts[None]
            shares.append(max(counts.values(), default=0) / len(pods))
    unmet = 1 - sum(shares) / len(shares) if shares else 0.0
    before = {node.name for node in nodes if _busy(node, use.get(node.name, NodeUse()), [])}
    after = set(before)
    for pod in pods_of(gang):
        node = by_name[assignment[pod.name]] if pod.name in assignment and not pod.node else None
        if node is not None and _busy(node, NodeUse(), [pod]):
            after.add(node.name)
    broken = []
    for level in range(len(levels)):
        domains = {d for node in nodes if (d := _domain(node, levels, level)) is not None}
        for_level = 0
        for domain in domains:
            inside = {node.name for node in nodes if _domain(node, levels, level) == domain}
            for_level += not inside & before and bool(inside & after)
        broken.append(for_level)
    return Objective(round(unmet, 9), tuple(broken))


def units_of(unit: Unit) -> Iterator[Unit]:
    yield unit
    for part in unit.parts:
        yield from units_of(part)


def pods_of(unit: Unit) -> Iterator[Pod]:
    for each in units_of(unit):
        yield from each.pods


def _possible(pod: Pod, nodes: list[Node]) -> list[str]:
    if pod.node:
        return [pod.node]
    return [node.name for node in nodes if rejection(pod.shape, node) is None]


def _fits(node: Node, use: NodeUse, pods: list[Pod]) -> bool:
    for name in {name for pod in pods for name, amount in pod.shape.requests.items() if amount}:
        used = sum(amounts.get(name, 0) for amounts in (*use.by_priority.values(), use.reserved))
        if used + sum(pod.shape.requests.get(name, 0) for pod in pods) > node.allocatable.get(name, 0):
            return False
    return sum(pod.shape.fabric for pod in pods) <= 1


def _busy(node: Node, use: NodeUse, pods: list[Pod]) -> bool:
    """Accelerators are in use, or anything on a node without accelerators."""
    accelerators = {name for name, amount in node.allocatable.items() if "/" in name and amount > 0}
    used = [*use.by_priority.values(), use.reserved, *(pod.shape.requests for pod in pods)]
    return any(
        amount > 0 and ("/" in name or not accelerators)
        for amounts in used
        for name, amount in amounts.items()
    )


def _path(node: Node, levels: tuple[str, ...]) -> tuple[str, ...]:
    """A node lies in no domain below a level whose label it does not have."""
    values = [node.labels.get(key, "") for key in levels]
    return tuple(value if all(values[: number + 1]) else "" for number, value in enumerate(values))


def _domain(node: Node, levels: tuple[str, ...], level: int) -> tuple[str, ...] | None:
    path = _path(node, levels)
    return path[: level + 1] if path[level] else None
