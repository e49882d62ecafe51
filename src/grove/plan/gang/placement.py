"""What the plan of a replica asks of placement, and what it applies of the decisions.

A gang asks while one of its pods has no node. A gang that is held for something else does not ask, and so
reserves nothing. Until there is a decision, none of its pods is created or released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.formats import durations
from grove.api.intents import Create, Patch, uid_of
from grove.api.meta import Condition
from grove.api.naming import annotations as keys
from grove.api.naming import well_known
from grove.api.types.pod import read_template
from grove.plan.cliques.state import CliqueState
from grove.plan.desired.expand import Clique, Gang
from grove.plan.gang.packed_domains import PackedDomains
from grove.plan.gang.pod_needs import pod_needs
from grove.plan.gang.shared_domain import levels_of, pins_of_base, pins_of_scaled
from grove.plan.members import pod_state
from grove.plan.members.membership import Member
from grove.plan.placement.assignment import (
    NO_NODE_LABELS,
    Assignment,
    Decision,
    GangName,
    NodeLabels,
    Pins,
    PlacementRecord,
    Placements,
    PodSlot,
    Waiting,
    recorded,
    to_annotation,
)
from grove.plan.placement.demand import (
    Demand,
    Fallback,
    PackedDomain,
    WantedClique,
    WantedPod,
    clique_unit,
    gang_unit,
    pod_shape,
    priority_class,
    walk,
)
from grove.plan.placement.needs import ClaimSources, PodNeeds, unprotected
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import target_of_kind
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason
from grove.reasons.placement import domain_name
from grove.schedulers.backend import PlacementRequest, SchedulerBackend
from grove.topology.availability import has_all_levels
from grove.topology.fallbacks import fallbacks_of, with_fallback
from grove.topology.placement.model import Unit

Body = dict[str, Any]
GangBodies = Callable[[int], Body]
"""The desired PodGang with the constraint of the set (0), or with one of its fallbacks (1, ...)."""


IN_PART = "there is no place for all of its pods; they may start one by one, so that autoscalers see them"


class GangPlacement(Struct, frozen=True):
    """The placement of one gang, as far as it is decided."""

    applies: bool = False
    """Whether the gang is placed by the operator."""
    assignment: Assignment | None = None
    message: str = ""
    """Why it waits for nodes; empty if it does not, or if that is not decided yet."""
    waits_for_base: bool = False
    """Whether the base gang must be scheduled first."""
    decision: Decision | None = None
    """What is decided, also for a gang that waits: nodes may be held for it."""
    delay: str = ""
    """Of an undecided gang: why the decision takes long, as far as it is known."""
    placed_by: int = 0
    """Of a gang of which pods may have nodes: by which constraint it was placed."""
    reason: WaitReason | None = None
    """Why it waits for nodes, with its code; None also if another plan says it."""

    @property
    def undecided(self) -> bool:
        """Whether the decision is still to come, or comes once the pods of a failed attempt are deleted."""
        if self.assignment is not None:
            return self.assignment.failed
        return self.applies and not self.message and not self.waits_for_base

    @property
    def awaits_decision(self) -> bool:
        """Whether the decision is about to come: the round of placement that follows this plan takes it."""
        return self.undecided and self.assignment is None and not self.delay

    @property
    def attempt(self) -> int:
        """By which constraint the gang is placed: that of the set (0), or a fallback (1, ...)."""
        return self.assignment.attempt if self.assignment is not None else self.placed_by

    @property
    def scheduler_chooses(self) -> bool:
        """Whether the scheduler alone chooses the nodes of its pods."""
        return not self.applies or (self.assignment is not None and self.assignment.in_part)

    def gated(self, slot: PodSlot) -> bool:
        """Whether a pod must not be scheduled yet."""
        if self.waits_for_base or not self.applies:
            return self.waits_for_base
        return self.assignment is None or not self.assignment.releases(slot)

    def node_labels_of_pod(self, slot: PodSlot) -> NodeLabels:
        """The labels of nodes that a released pod must have, and should have."""
        return self.assignment.node_labels_of_pod(slot) if self.assignment is not None else NO_NODE_LABELS

    def annotated(self, gang: Body) -> Body:
        """The gang with its pins as an annotation."""
        if self.assignment is None:
            return gang
        annotations = gang["metadata"].get("annotations") or {}
        pins = to_annotation(self.assignment)
        if annotations.get(keys.PLACEMENT, "") == pins:
            return gang
        annotations = {**annotations, keys.PLACEMENT: pins}
        return {**gang, "metadata": {**gang["metadata"], "annotations": annotations}}

    def nominate(self, slot: PodSlot, member: Member) -> Patch | None:
        """The nomination of an existing pod to its node, or the end of a nomination to another one; None if
        nothing is to be written."""
        pod, decision = member.pod, self.decision
        if pod is None or not pod_state.gated(pod):
            return None
        if decision is None and (self.undecided or not self.applies):
            return None
        node, renewal = self._nominated_node(slot), decision.renewal if decision is not None else ""
        if isinstance(decision, Assignment) and decision.releases(slot):
            return None
        known = not renewal or not node or pod.metadata.annotations.get(keys.NOMINATION) == renewal
        if known and pod.status.nominated_node_name == node:
            return None
        return _nomination(target_of_kind("v1", "Pod", pod), pod.metadata.uid, node, renewal)

    def nominate_created(self, slot: PodSlot, created: Create) -> Patch | None:
        """The same for a pod that the plan creates."""
        node = self._nominated_node(slot)
        if not node or self.decision is None:
            return None
        return _nomination(created.target, uid_of(created), node, self.decision.renewal, created.id)

    def _nominated_node(self, slot: PodSlot) -> str:
        decision = self.decision
        if isinstance(decision, Assignment):
            return decision.nominated_node(slot)
        return decision.nodes.get(slot, "") if decision is not None else ""


def _nomination(target: Any, uid: str, node: str, renewal: str, *after: str) -> Patch:
    """The write of a nomination. If schedulers forget it, an annotation changes with it: a write that changes
    nothing is no event for them."""
    metadata: Body = {"uid": uid}
    if node and renewal:
        metadata["annotations"] = {keys.NOMINATION: renewal}
    body = {"metadata": metadata, "status": {"nominatedNodeName": node or None}}
    return Patch(target, body, subresource="status", after=after)


class PlacementPlanner:
    """Collects the demands of one replica's gangs."""

    def __init__(
        self,
        snapshot: Snapshot,
        cliques: Mapping[str, CliqueState],
        gangs: Iterable[Gang],
        was_scheduled: Callable[[CliqueState], bool],
    ) -> None:
        self._snapshot, self._cliques, self._was_scheduled = snapshot, cliques, was_scheduled
        self._scaled_gangs = [gang for gang in gangs if gang.base_gang]
        self.late = snapshot.placements is not None and snapshot.placements.late
        """Whether the decision takes longer than usual."""
        self.demands: list[Demand] = []
        self.needs_listed = True
        """Whether no demand is missing only because the volumes or devices of pods are not listed yet."""
        self.placed: dict[str, Condition | None] = {}
        """The gangs that the operator places, also those that have their nodes; with the condition that says
        what of their needs nominations do not hold."""

    def of(self, gang: Gang, bodies: GangBodies, waits_for_base: bool, held: str) -> GangPlacement:
        """The placement of a gang. `held` says what else it waits for besides its base gang."""
        body = bodies(0)
        backend, placements = self._snapshot.scheduler, self._snapshot.placements
        if placements is None or backend is None or not backend.places(_placement_request(gang, body)):
            return GangPlacement(waits_for_base=waits_for_base)
        needs = {clique.name: self._needs(clique) for clique in gang.cliques}
        self.placed[gang.name] = unprotected(needs.values())
        record = self._recorded(_annotations(body))
        if held or waits_for_base:
            found = GangPlacement(applies=True, message=held, waits_for_base=waits_for_base)
        else:
            found = self._decided(gang, self._demand(gang, bodies, backend, needs), record, placements, needs)
        return replace(found, placed_by=0 if self._is_movable(gang) else record.attempt)

    def _decided(
        self,
        gang: Gang,
        demand: Demand,
        record: PlacementRecord,
        placements: Placements,
        needs: Mapping[str, PodNeeds],
    ) -> GangPlacement:
        """The placement of a gang that may ask for nodes."""
        if not any(demand.unbound):
            # Every pod has its node; pods that were created or released are no longer gated.
            return GangPlacement(True, Assignment(attempt=record.attempt, pins=record.pins))
        listed = all(each.listed for each in needs.values())
        if problem := placements.problem or (placements.sources.problem if not listed else ""):
            self.demands += [demand] if listed else []
            if not demand.constrained:
                return GangPlacement()
            return _waits(ReasonCode.NODES_NOT_LISTED, f"cannot place it: {problem}")
        if not listed:
            self.needs_listed = False
            return _delayed(placements.sources.delay or placements.delay)
        if not _has_begun(demand) and (wait := _waits_for_claim(needs.values())) is not None:
            return wait
        self.demands.append(demand)
        decision = placements.decisions.get(gang.name)
        if decision is None:
            return _delayed(placements.delay)
        if isinstance(decision, Waiting):
            return GangPlacement(
                applies=True, message=decision.message, decision=decision, reason=decision.reason
            )
        found = _waits(ReasonCode.RELEASED_IN_PART, IN_PART) if decision.in_part else GangPlacement(True)
        reason = found.reason or self._extra_pods_reason(demand, decision)
        return replace(found, assignment=decision, decision=decision, reason=reason)

    def _extra_pods_reason(self, demand: Demand, decision: Assignment) -> WaitReason | None:
        """Why pods beyond the minimum wait although the gang is placed; None if none do."""
        left = sum(pod.slot not in decision.nodes for pod in demand.unbound)
        if not left or decision.failed:
            return None
        where = domain_name(decision.domain, levels_of(self._snapshot, decision.attempt))
        message = f"no room in {where} for {left} pod{'s' * (left > 1)} beyond the minimum"
        return WaitReason(ReasonCode.INSUFFICIENT_RESOURCES, message, changing=True)

    def _demand(
        self, gang: Gang, bodies: GangBodies, backend: SchedulerBackend, needs: Mapping[str, PodNeeds]
    ) -> Demand:
        movable = self._is_movable(gang)
        follow = self._followed(gang, movable)
        packed = PackedDomains(self._snapshot.workload.metadata.namespace)
        cliques = [
            self._wanted(clique, follow, needs[clique.name], packed.numbers(clique))
            for clique in gang.cliques
        ]
        found, record = self._snapshot.gangs.get(gang.name), self._recorded(_annotations(bodies(0)))
        pods = tuple(pod for clique in cliques for pod in clique.pods)
        attempt = 0 if movable else record.attempt
        unit = gang_unit(bodies(attempt), cliques)
        looks_ahead = movable and bool(unit.required or packed.domains)
        further = tuple(self._further(gang, packed)) if looks_ahead else ()
        domains = packed.domains
        return Demand(
            gang=GangName(self._snapshot.workload.metadata.namespace, gang.name),
            unit=unit,
            pods=pods,
            levels=levels_of(self._snapshot, attempt),
            attempt=attempt,
            fallbacks=tuple(self._fallbacks(bodies, cliques)) if movable else (),
            scheduler=backend.name,
            priority_classes=self._priority_classes(gang),
            created=found.metadata.creation_timestamp or "" if found is not None else "",
            further=further,
            looks_ahead=looks_ahead,
            pinned=self._current_pins(record, domains) if attempt == record.attempt else {},
            was_scheduled=all(self._was_scheduled(self._cliques[clique.name]) for clique in gang.cliques),
            constrained=any(each.required for each in walk(unit)) or any(each.required for each in domains),
            grouped=backend.gang_object_kind is not None,
            domains=domains,
        )

    def _followed(self, gang: Gang, movable: bool) -> Pins:
        """The pins of the domain in which other gangs of the replica are, by the constraint of the set."""
        if gang.base_gang:
            return pins_of_base(self._snapshot, gang)
        return pins_of_scaled(self._snapshot, gang, self._scaled_gangs) if movable else {}

    def _is_movable(self, gang: Gang) -> bool:
        """Whether no pod of a gang can have a node yet. Later it stays with the constraint that it was placed
        by."""
        return all(pod.gated for clique in gang.cliques for pod in _pods(self._cliques[clique.name]))

    def _priority_classes(self, gang: Gang) -> tuple[str, ...]:
        """The PriorityClasses of a gang's pods: their own, or that of the set."""
        of_set = self._snapshot.priority_class
        templates = (bytes(clique.template.spec.pod_spec) for clique in gang.cliques)
        return tuple({priority_class(each) or of_set: None for each in templates})

    def _current_pins(self, record: PlacementRecord, domains: tuple[PackedDomain, ...]) -> dict[str, Pins]:
        """The recorded pins without those of levels that the topology no longer has, and of partitions that
        are no longer required."""
        current = {
            *levels_of(self._snapshot, record.attempt),
            *(each.key for each in domains if each.required),
        }
        return {
            clique: {key: value for key, value in pins.items() if key in current}
            for clique, pins in record.pins.items()
        }

    def _recorded(self, annotations: Mapping[str, str]) -> PlacementRecord:
        return recorded(annotations, len(self._snapshot.fallback_topologies))

    def _fallbacks(self, bodies: GangBodies, cliques: list[WantedClique]) -> Iterator[Fallback]:
        after = 0.0
        template = self._snapshot.workload.spec.template
        for number, each in enumerate(fallbacks_of(template), start=1):
            after += durations.parse(each.after).total_seconds()
            # Without a level that it names, it would be no constraint at all.
            if has_all_levels(with_fallback(template, number - 1), self._snapshot.topology_of(number)):
                yield Fallback(
                    number, after, gang_unit(bodies(number), cliques), levels_of(self._snapshot, number)
                )

    def _further(self, gang: Gang, packed: PackedDomains) -> Iterator[Unit]:
        """The scaled gangs of a base gang, which follow it into its domain and partition."""
        for scaled in self._scaled_gangs:
            if scaled.base_gang == gang.name:
                parts = (
                    clique_unit(self._wanted(clique, {}, self._needs(clique), packed.numbers(clique)))
                    for clique in scaled.cliques
                )
                yield Unit(scaled.name, parts=tuple(parts))

    def _needs(self, clique: Clique) -> PodNeeds:
        placements = self._snapshot.placements
        return pod_needs(self._snapshot, clique, placements.sources if placements else ClaimSources())

    def _wanted(
        self, clique: Clique, follow: Pins, needs: PodNeeds, partitions: tuple[int, ...]
    ) -> WantedClique:
        template, pins = bytes(clique.template.spec.pod_spec), tuple(sorted(follow.items()))
        in_fabric = bool(clique.fabric_domains)
        shape = pod_shape(template, in_fabric, pins, needs.amounts, needs.nodes, partitions)
        return WantedClique(
            clique.name, clique.min_available, shape, tuple(_pods(self._cliques[clique.name]))
        )


def _has_begun(demand: Demand) -> bool:
    """Whether a gang that has never run has pods that are released to the scheduler. It ends whole or starts
    over, whatever it lacks."""
    return not demand.was_scheduled and any(pod.name and not pod.gated for pod in demand.pods)


def _waits_for_claim(needs: Iterable[PodNeeds]) -> GangPlacement | None:
    """A gang that waits for an object without which its pods cannot be scheduled; None if none is missing."""
    for each in needs:
        if each.waits_for:
            return _waits(ReasonCode.CLAIM_MISSING, f"waits for {each.waits_for}, which does not exist")
        if each.unbound_first:
            volume = f"PersistentVolumeClaim {each.unbound_first}"
            return _waits(ReasonCode.VOLUME_NOT_BOUND, f"waits for {volume}, which is not bound")
    return None


def _waits(code: ReasonCode, message: str) -> GangPlacement:
    return GangPlacement(applies=True, message=message, reason=WaitReason(code, message))


def _delayed(cause: str) -> GangPlacement:
    """An undecided gang; `cause` says why that takes long, as far as it is known."""
    if not cause:
        return GangPlacement(applies=True)
    delay = f"cannot place it yet: {cause}"
    return GangPlacement(True, delay=delay, reason=WaitReason(ReasonCode.NODES_NOT_LISTED, delay))


def held_by_user(gang: Gang, cliques: Mapping[str, CliqueState]) -> bool:
    """Whether pods of a gang have scheduling gates of the user, which no operator removes."""
    return any(_has_user_gates(clique, cliques[clique.name].membership.members) for clique in gang.cliques)


def _has_user_gates(clique: Clique, members: Iterable[Member]) -> bool:
    in_template = any(
        gate.name != well_known.GANG_GATE
        for gate in read_template(clique.template.spec.pod_spec).scheduling_gates
    )
    for member in members:
        if member.pod is None:
            if in_template:
                return True
        elif any(gate.name != well_known.GANG_GATE for gate in member.pod.spec.scheduling_gates):
            return True
    return False


def _pods(clique: CliqueState) -> Iterator[WantedPod]:
    members = clique.membership.members
    named = {member.name for member in members}
    # If all pods are lost or terminated at once, the gang starts over: it may go elsewhere. Those that an
    # update replaces keep their nodes.
    starts_over = clique.unit is None and all(member.pod is None for member in members)
    leaving = {
        pod_state.index_of(pod): (pod.spec.node_name, pod.metadata.name)
        for pod in clique.pods
        if not starts_over and pod.metadata.name not in named and not pod_state.ended(pod)
    }
    for member in members:
        pod, slot = member.pod, PodSlot(clique.wanted.name, member.index)
        predecessor = leaving.get(member.index, ("", ""))
        if not predecessor[0] or (pod is not None and pod.spec.node_name):
            predecessor = "", ""
        if pod is None:
            yield WantedPod(slot, "", "", True, *predecessor)
        else:
            yield WantedPod(slot, pod.metadata.name, pod.spec.node_name, pod_state.gated(pod), *predecessor)


def _placement_request(gang: Gang, body: Body) -> PlacementRequest:
    pods = sum(clique.replicas for clique in gang.cliques)
    return PlacementRequest(
        body, pods, any(clique.fabric_domains for clique in gang.cliques), bool(gang.base_gang)
    )


def _annotations(body: Body) -> Mapping[str, str]:
    found: Mapping[str, str] = body["metadata"].get("annotations") or {}
    return found
