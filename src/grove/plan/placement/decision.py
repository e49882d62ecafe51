"""Decides on one gang at a time: an assignment next to those that were given before, or why it waits.

Where nodes are plentiful, pods are created at once with the pins of their domain, and the scheduler chooses
their nodes. Where nodes are scarce, pods are nominated to nodes and released together (see `release`). So are
pods for which the scheduler must preempt others: their nominations keep pods of the same priority off the
nodes that the victims leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.demand import Demand, labelled_shape, pod_name, walk
from grove.plan.placement.domain_members import NodesByDomain, partitions_of
from grove.plan.placement.pins import (
    domain_pins,
    kept_pins,
    merged,
    partition_labels,
    partition_pins,
    pinned_domain,
    pinned_unit,
    preferred_labels,
    with_existing_pins,
    with_shapes,
)
from grove.plan.placement.slack import PodsInFlight, has_slack
from grove.reasons.placement import refusal_reason
from grove.topology.placement.answers import Answer, GaveUp, NoFit, Placed
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Amounts, Domain, Node, PodShape, Problem, Unit
from grove.topology.placement.refusals import Refusal, Refusals, problem_key
from grove.topology.placement.search.state import WorkMeter
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
    """The limit of the solver's work in one search."""
    members: NodesByDomain = {}
    """The nodes with pods of its fabric domains, also of other gangs."""
    meter: WorkMeter | None = None
    """What is left of the work for all searches of the decision; None: that is not limited."""


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
    demand = with_existing_pins(index, demand)
    unit = asked_unit(index, demand, given.requests)
    if minimum_only:
        unit = _without_extras(unit)
    refusals = refusals if refusals is not None else Refusals()
    problems = _problems(index, unit, demand, given)
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
        pins=merged(
            domain_pins(index, unit, answer),
            # A pod that replaces another prefers the partition only: if that fills meanwhile, the gang does
            # not start over, and a pin would keep the pod waiting for ever.
            partition_pins(
                index, unit, demand, answer, with_preferred=not (scarce or demand.was_scheduled)
            ).items(),
        ),
        present=dict(_present_labels(index, unit)),
        nodes=nodes,
        nominated=scarce and _may_be_nominated(demand),
        preempts=preempts,
        near=merged(
            preferred_labels(index, unit, answer), partition_labels(unit, demand, answer, required=False)
        ),
        domain=answer.domains[unit.name] if unit.required else (),
    )
    return Decided(assignment)


def _refused(index: ClusterIndex, answer: Refusal) -> Decided:
    fits = not isinstance(answer, NoFit) or answer.fits_if_empty is not False
    reason = refusal_reason(answer, index.levels)
    waiting = Waiting(reason.message, isinstance(answer, GaveUp), reason=reason)
    return Decided(waiting, fits_if_empty=fits)


def _asked(
    capacity: ClusterCapacity, demand: Demand, problems: list[Problem], given: Circumstances
) -> Hashable:
    """All that the answer of the solver depends on, without the names of units and pods."""
    return (
        capacity.fingerprint,
        demand.levels,
        tuple(map(problem_key, problems)),
        _preempts_below(capacity, given),
        given.work if given.meter is None else min(given.work, max(0, given.meter.left)),
        demand.gang if any(pod.predecessor for pod in demand.unbound) else None,
    )


def asked_unit(index: ClusterIndex, demand: Demand, requests: Mapping[str, Amounts]) -> Unit:
    """The gang as it can be placed: with the requests of its pods as admitted, without required levels that
    its bound pods break, and where levels are required, only on nodes that belong to the topology."""
    unit = _without_broken_levels(index, _with_admitted_requests(demand, requests))
    present = dict(_present_labels(index, unit))
    return with_shapes(unit, {clique: partial(labelled_shape, keys=keys) for clique, keys in present.items()})


def reservations(
    demand: Demand, requests: Mapping[str, Amounts], nodes: Mapping[PodSlot, str]
) -> dict[str, Amounts]:
    """What is reserved for a gang with these nodes, by node. A pod whose predecessor still has the node needs
    no reservation there."""
    kept = {pod.slot for pod in demand.unbound if pod.predecessor and pod.predecessor == nodes.get(pod.slot)}
    others = {slot: node for slot, node in nodes.items() if slot not in kept}
    return _reservations(_with_admitted_requests(demand, requests), others)


def usable_by(demand: Demand, nodes: Mapping[PodSlot, str]) -> Callable[[Node], bool]:
    """Whether the pods that have a node may still go there: it is not cordoned, tainted or labelled otherwise
    since, as far as they do not tolerate that."""
    shapes = {pod.name: pod.shape for each in walk(demand.unit) for pod in each.pods}
    by_node: dict[str, dict[int, PodShape]] = {}
    for slot, node in nodes.items():
        if (shape := shapes.get(pod_name(slot))) is not None:  # None: it was scaled in
            by_node.setdefault(node, {})[id(shape)] = shape

    def usable(node: Node) -> bool:
        return all(rejection(shape, node) is None for shape in by_node.get(node.name, {}).values())

    return usable


def _nodes(demand: Demand, answer: Placed) -> dict[PodSlot, str]:
    """The nodes of the pods that are not bound yet."""
    named = {pod.slot: pod_name(pod.slot) for pod in demand.unbound}
    return {slot: answer.nodes[name] for slot, name in named.items() if name in answer.nodes}


def _preempts_below(capacity: ClusterCapacity, given: Circumstances) -> int | None:
    return capacity.preemption_limit(given.priority) if given.may_preempt else None


def _problems(index: ClusterIndex, unit: Unit, demand: Demand, given: Circumstances) -> list[Problem]:
    """What is tried in turn. A unit stays in the domain that it is pinned to as long as it fits there, or if
    a pod may be there. A gang all of whose pods were deleted may go elsewhere."""
    starts_over = not any(pod.name for pod in demand.pods)
    kept = kept_pins(unit, demand)
    pins = kept if starts_over else demand.pinned
    former = pinned_domain(index, unit, demand.pinned) if starts_over else None
    first = Problem(
        pinned_unit(unit, pins),
        excluded=given.excluded,
        further=demand.further,
        looks_ahead=demand.looks_ahead,
        former=former,
        partitions=partitions_of(index, unit, demand, given.members),
    )
    return [first, replace(first, gang=pinned_unit(unit, kept))] if kept != pins else [first]


def _solve(
    capacity: ClusterCapacity, demand: Demand, problems: list[Problem], given: Circumstances
) -> tuple[Answer, bool]:
    """The answer of the solver, and whether pods of a lower priority must leave first."""
    index, below = capacity.index(demand.levels), _preempts_below(capacity, given)
    for problem in problems:
        answer = solve(index, problem, given.work, meter=given.meter)
        if not isinstance(answer, NoFit):
            return answer, False
    if below is not None:
        preempting = solve(index, replace(problem, preempt_below=below), given.work, meter=given.meter)
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

    beside = bound(pinned_unit(unit, demand.pinned))
    partitions = partitions_of(index, beside, demand, given.members)
    problem = Problem(beside, excluded=given.excluded, partitions=partitions)
    answer = solve(index, problem, given.work, meter=given.meter)
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
    index = capacity.index(demand.levels)
    packed = pinned_unit(unit, partition_pins(index, unit, demand, answer, with_preferred=True))
    keys = {each.key for each in demand.domains} if any(answer.partitions) else ()
    return not has_slack(index, packed, answer, given.in_flight, keys)


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
    known = [index.ids[node] for node in nodes if node in index.ids]
    domains = {index.domain_at(i, level) for i in known}
    deepest = level + len(index.narrower_labels(level))
    if len(domains) > 1 or None in domains or not all(index.paths[i][deepest] for i in known):
        return replace(unit, required="", preferred=unit.preferred or unit.required, parts=parts)
    return replace(unit, parts=parts)


def _present_labels(
    index: ClusterIndex, unit: Unit, outer: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """By clique with a required level, the labels of narrower levels that its nodes must have: nodes of
    another pool may share those of the level and the wider ones."""
    if not outer and unit.required in index.levels:
        outer = index.narrower_labels(index.levels.index(unit.required))
    if unit.pods and outer:
        yield unit.name, outer
    for part in unit.parts:
        yield from _present_labels(index, part, outer)


def _reservations(unit: Unit, nodes: Mapping[PodSlot, str]) -> dict[str, Amounts]:
    requests = {pod.name: pod.shape.requests for each in walk(unit) for pod in each.pods}
    by_node: dict[str, Counter[str]] = {}
    for slot, node in nodes.items():
        by_node.setdefault(node, Counter()).update(requests[pod_name(slot)])
    return {node: dict(amounts) for node, amounts in by_node.items()}
