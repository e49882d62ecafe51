"""Decides on one gang at a time: an assignment next to those that were given before, or why it waits.

Where nodes are plentiful, pods are created at once with the pins of their domain, and the scheduler chooses
their nodes. Where nodes are scarce, pods are nominated to nodes and released together (see `release`). So are
pods for which the scheduler must preempt others: their nominations keep pods of the same priority off the
nodes that the victims leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, Pins, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.demand import Demand, pinned_shape, pod_name, walk
from grove.plan.placement.message import waiting_message
from grove.plan.placement.slack import PodsInFlight, has_slack
from grove.topology.placement.answers import Answer, GaveUp, NoFit, Placed
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Amounts, Domain, Problem, Unit
from grove.topology.placement.refusals import Refusal, Refusals, problem_key
from grove.topology.placement.solve import solve


class Circumstances(Struct, frozen=True):
    """What a decision depends on besides the demand and the capacity."""

    priority: int = 0
    may_preempt: bool = True
    requests: Mapping[str, Amounts] = {}
    """By the name of an existing pod, its requests as admitted. Pods that do not exist yet are counted by
    their template."""
    in_flight: PodsInFlight = PodsInFlight()
    """The pods of others that the scheduler may bind at any moment."""
    others_wait: bool = False
    """Whether another gang waits for nodes."""
    has_quota: bool = False
    """Whether a ResourceQuota of the namespace could refuse some of the pods."""
    excluded: Mapping[Domain, str] = {}
    """Domains in which an attempt has failed, with the reason."""
    work: int = timing.PLACEMENT_WORK
    """The limit of the solver's work."""


class Decided(Struct, frozen=True):
    """A decision, with what the next decisions depend on."""

    decision: Decision
    fits_if_empty: bool = True
    """Of a gang that waits: whether it could fit once others have left."""


def decide(
    capacity: ClusterCapacity,
    demand: Demand,
    given: Circumstances,
    refusals: Refusals | None = None,
    *,
    minimum_only: bool = False,
) -> Decided:
    """The decision for a gang. Its reservations in the capacity are replaced. `refusals`: what was refused in
    the same round. `minimum_only`: pods beyond the minimum of their cliques get no node."""
    capacity.reserve(demand.gang, {})
    index = capacity.domains(demand.levels)
    unit = asked_unit(index, demand, given.requests)
    if minimum_only:
        unit = _without_extras(unit)
    refusals = refusals if refusals is not None else Refusals()
    problems = _problems(unit, demand, given)
    asked = _asked(capacity, demand, problems, given)
    if (known := refusals.find(asked, unit)) is not None:
        return _refused(index, known)
    answer, preempts = _solve(capacity, demand, problems, given)
    scarce = preempts
    if isinstance(answer, Placed) and not preempts:
        capacity.reserve(demand.gang, _reservations(unit, _nodes(demand, answer)))
        scarce = _is_scarce(capacity, unit, demand, answer, given)
    if scarce or not isinstance(answer, Placed):
        capacity.reserve(demand.gang, {})
        if (beside := _solve_beside_predecessors(capacity, unit, demand, given)) is not None:
            answer, preempts, scarce = beside, False, True
    if not isinstance(answer, Placed):
        refusals.record(asked, unit, answer)
        return _refused(index, answer)
    nodes = _nodes(demand, answer)
    capacity.reserve(demand.gang, reservations(demand, given.requests, nodes))
    assignment = Assignment(
        attempt=demand.attempt,
        pins=dict(_pins(index, unit, answer)),
        nodes=nodes,
        nominated=scarce and _may_be_nominated(demand),
        preempts=preempts,
        near=dict(_preferred_labels(index, unit, answer)),
        domain=answer.domains[unit.name] if unit.required else (),
    )
    return Decided(assignment)


def _refused(index: ClusterIndex, answer: Refusal) -> Decided:
    fits = not isinstance(answer, NoFit) or answer.fits_if_empty is not False
    return Decided(Waiting(waiting_message(index, answer), isinstance(answer, GaveUp)), fits_if_empty=fits)


def _asked(
    capacity: ClusterCapacity, demand: Demand, problems: list[Problem], given: Circumstances
) -> Hashable:
    """All that the answer of the solver depends on, without the names of units and pods."""
    return (
        capacity.fingerprint,
        demand.levels,
        tuple(map(problem_key, problems)),
        _preempts_below(capacity, given),
        given.work,
        demand.gang if any(pod.predecessor for pod in demand.unbound) else None,
    )


def asked_unit(index: ClusterIndex, demand: Demand, requests: Mapping[str, Amounts]) -> Unit:
    """The gang as it can be placed: with the requests of its pods as admitted, and without required levels
    that its bound pods break."""
    return _without_broken_levels(index, _with_admitted_requests(demand, requests))


def reservations(
    demand: Demand, requests: Mapping[str, Amounts], nodes: Mapping[PodSlot, str]
) -> dict[str, Amounts]:
    """What is reserved for a gang with these nodes, by node. A pod whose predecessor still has the node needs
    no reservation there."""
    kept = {pod.slot for pod in demand.unbound if pod.predecessor and pod.predecessor == nodes.get(pod.slot)}
    others = {slot: node for slot, node in nodes.items() if slot not in kept}
    return _reservations(_with_admitted_requests(demand, requests), others)


def _nodes(demand: Demand, answer: Placed) -> dict[PodSlot, str]:
    """The nodes of the pods that are not bound yet."""
    named = {pod.slot: pod_name(pod.slot) for pod in demand.unbound}
    return {slot: answer.nodes[name] for slot, name in named.items() if name in answer.nodes}


def _preempts_below(capacity: ClusterCapacity, given: Circumstances) -> int | None:
    return capacity.preemption_limit(given.priority) if given.may_preempt else None


def _problems(unit: Unit, demand: Demand, given: Circumstances) -> list[Problem]:
    """What is tried in turn. A gang stays in the domains that it is pinned to as long as it fits there, or if
    a pod may be there."""
    pinned = Problem(pinned_unit(unit, demand.pinned), excluded=given.excluded, further=demand.further)
    return [pinned, replace(pinned, gang=unit)] if demand.pinned and demand.movable else [pinned]


def _solve(
    capacity: ClusterCapacity, demand: Demand, problems: list[Problem], given: Circumstances
) -> tuple[Answer, bool]:
    """The answer of the solver, and whether pods of a lower priority must leave first."""
    index, below = capacity.index(demand.levels), _preempts_below(capacity, given)
    for problem in problems:
        answer = solve(index, problem, given.work)
        if not isinstance(answer, NoFit):
            return answer, False
    if below is not None:
        preempting = solve(index, replace(problem, preempt_below=below), given.work)
        if isinstance(preempting, Placed):
            return preempting, True
    return answer, False


def _solve_beside_predecessors(
    capacity: ClusterCapacity, unit: Unit, demand: Demand, given: Circumstances
) -> Placed | None:
    """The gang with successors on the nodes of their predecessors, which still use them."""
    if not any(pod.predecessor for pod in demand.unbound):
        return None
    index = capacity.index(demand.levels)
    shapes = {pod.name: pod.shape for each in walk(unit) for pod in each.pods}
    kept = {
        name: pod.predecessor
        for pod in demand.unbound
        if pod.predecessor in index.ids
        and (name := pod_name(pod.slot)) in shapes
        and rejection(shapes[name], index.node(index.ids[pod.predecessor])) is None
    }
    if not kept:
        return None

    def bound(part: Unit) -> Unit:
        pods = tuple(replace(pod, node=kept.get(pod.name, pod.node)) for pod in part.pods)
        return replace(part, pods=pods, parts=tuple(map(bound, part.parts)))

    answer = solve(index, Problem(bound(pinned_unit(unit, demand.pinned)), excluded=given.excluded))
    return answer if isinstance(answer, Placed) else None


def _may_be_nominated(demand: Demand) -> bool:
    """Whether pods may be nominated to their nodes. A release that has begun is finished without that."""
    return demand.asks and all(pod.gated for pod in demand.unbound)


def _is_scarce(
    capacity: ClusterCapacity, unit: Unit, demand: Demand, answer: Placed, given: Circumstances
) -> bool:
    """Whether other pods could take the nodes before all pods of the gang are bound."""
    if given.others_wait or given.has_quota:
        return True
    return not has_slack(capacity.index(demand.levels), unit, answer, given.in_flight)


def _with_admitted_requests(demand: Demand, requests: Mapping[str, Amounts]) -> Unit:
    """The gang with the requests of its existing pods."""
    admitted = {pod_name(pod.slot): requests[pod.name] for pod in demand.pods if pod.name in requests}
    if not admitted:
        return demand.unit

    def rebuilt(unit: Unit) -> Unit:
        pods = tuple(
            replace(pod, shape=replace(pod.shape, requests=admitted[pod.name]))
            if admitted.get(pod.name, pod.shape.requests) != pod.shape.requests
            else pod
            for pod in unit.pods
        )
        return replace(unit, pods=pods, parts=tuple(map(rebuilt, unit.parts)))

    return rebuilt(demand.unit)


def _without_extras(unit: Unit) -> Unit:
    pods = tuple(pod for pod in unit.pods if pod.node or not pod.extra)
    return replace(unit, pods=pods, parts=tuple(map(_without_extras, unit.parts)))


def _without_broken_levels(index: ClusterIndex, unit: Unit) -> Unit:
    """The gang without required levels that its bound pods break: they were bound before, or nodes have other
    labels since. Those levels are preferred, so that lost pods are replaced."""
    parts = tuple(_without_broken_levels(index, part) for part in unit.parts)
    if unit.required not in index.levels:
        return replace(unit, parts=parts)
    level = index.levels.index(unit.required)
    nodes = {pod.node for each in walk(unit) for pod in each.pods if pod.node}
    domains = {index.domain_at(index.ids[node], level) for node in nodes if node in index.ids}
    if len(domains) > 1 or None in domains:
        return replace(unit, required="", preferred=unit.preferred or unit.required, parts=parts)
    return replace(unit, parts=parts)


def pinned_unit(unit: Unit, pins: Mapping[str, Pins]) -> Unit:
    """The gang with its pins as part of the node selectors of its pods."""
    if not pins:
        return unit
    pods = unit.pods
    if selector := pins.get(unit.name):
        shapes = {id(pod.shape): pod.shape for pod in pods}
        pinned = {known: pinned_shape(shape, selector) for known, shape in shapes.items()}
        pods = tuple(replace(pod, shape=pinned[id(pod.shape)]) for pod in pods)
    return replace(unit, pods=pods, parts=tuple(pinned_unit(part, pins) for part in unit.parts))


def _reservations(unit: Unit, nodes: Mapping[PodSlot, str]) -> dict[str, Amounts]:
    requests = {pod.name: pod.shape.requests for each in walk(unit) for pod in each.pods}
    by_node: dict[str, Counter[str]] = {}
    for slot, node in nodes.items():
        by_node.setdefault(node, Counter()).update(requests[pod_name(slot)])
    return {node: dict(amounts) for node, amounts in by_node.items()}


def _pins(index: ClusterIndex, unit: Unit, answer: Placed, outer: Domain = ()) -> Iterator[tuple[str, Pins]]:
    """By clique, the labels of the narrowest required domain that it is in, and of all domains around it."""
    domain = answer.domains[unit.name] if unit.required else outer
    domain = domain if len(domain) > len(outer) else outer
    if unit.pods and domain:
        yield unit.name, {key: value for key, value in zip(index.levels, domain, strict=False) if value}
    for part in unit.parts:
        yield from _pins(index, part, answer, domain)


def _preferred_labels(
    index: ClusterIndex, unit: Unit, answer: Placed, outer: Pins | None = None
) -> Iterator[tuple[str, Pins]]:
    """By clique, the label of the preferred level of each unit around it: its value on most of the nodes of
    that unit."""
    near = dict(outer or {})
    if unit.preferred in index.levels:
        level = index.levels.index(unit.preferred)
        values = Counter(
            index.paths[i][level]
            for each in walk(unit)
            for pod in each.pods
            if (i := index.ids.get(answer.nodes.get(pod.name, ""))) is not None
        )
        if common := next((value for value, _ in values.most_common() if value), ""):
            near[unit.preferred] = common
    if unit.pods and near:
        yield unit.name, near
    for part in unit.parts:
        yield from _preferred_labels(index, part, answer, near)
