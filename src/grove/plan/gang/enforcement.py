"""Collects by gang whether its topology constraints are enforced (see `grove.topology.enforcement`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.event_reasons import EventReason
from grove.api.meta import Condition
from grove.api.types.podgang import PodGang, PodGangStatus
from grove.plan.conditions import find, merge_conditions, without
from grove.plan.desired.expand import Gang
from grove.plan.desired.packing import domains_of_gang
from grove.plan.fabric.affinity import requires_partition
from grove.plan.gang.scheduler_objects import SchedulerObjects
from grove.plan.model import PlannedEvent
from grove.plan.placement.assignment import recorded
from grove.plan.placement.status import unmet_units
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import reference
from grove.topology.availability import unavailable
from grove.topology.constraints import domains
from grove.topology.enforcement import EnforcementFacts, combined, enforcement
from grove.topology.fallbacks import attempts

_TYPE = ConditionType.CONSTRAINTS_ENFORCED


def enforced_constraints(
    snapshot: Snapshot,
    gangs: Iterable[Gang],
    scheduler_objects: SchedulerObjects,
    placed: Collection[str],
    preferred_partitions: Mapping[str, str],
) -> Mapping[str, Condition]:
    """The condition of each existing gang with constraints, by its name. `placed` are the gangs that the
    operator places; `preferred_partitions` says by gang why its scheduler only prefers one partition for a
    fabric domain. A gang whose scheduler's object is not stored yet keeps what it has."""
    listed = list(gangs)
    constrained = domains(snapshot.workload.spec.template) or any(map(requires_partition, listed))
    if not constrained or scheduler_objects.is_unmanaged:
        return {}
    conditions: dict[str, Condition] = {}
    nodes = snapshot.nodes_of_pods
    for gang in listed:
        found = snapshot.gangs.get(gang.name)
        if found is None:
            continue
        if scheduler_objects.awaits_object(gang.name):
            known = find(found.status.conditions, _TYPE)
            conditions |= {gang.name: known} if known is not None else {}
        elif facts := _facts(snapshot, gang, found, scheduler_objects, gang.name in placed, nodes):
            unsupported = facts.unsupported or preferred_partitions.get(gang.name, "")
            conditions[gang.name] = enforcement(replace(facts, unsupported=unsupported))
    return conditions


def of_replica(conditions: Mapping[str, Condition]) -> Condition | None:
    """The condition of a replica with these gangs; None if none has constraints. The message of one that is
    False names the gang."""
    named = (
        replace(each, message=f"PodGang {gang}: {each.message}", last_transition_time="")
        if each.status == "False"
        else replace(each, last_transition_time="")
        for gang, each in conditions.items()
    )
    return combined(named)


def with_enforcement(status: PodGangStatus, new: Condition | None, now: float) -> tuple[Condition, ...]:
    """The conditions of a gang's status with this one, or without any of its type."""
    known = status.conditions
    return merge_conditions(known, (new,), now) if new is not None else without(known, _TYPE)


def lost_enforcement(gang: PodGang, new: Condition | None) -> tuple[PlannedEvent, ...]:
    """The event of a gang whose constraints were enforced before and are not any more."""
    before = find(gang.status.conditions, _TYPE)
    if new is None or before is None or (before.status, new.status) != ("True", "False"):
        return ()
    reason = EventReason.CONSTRAINTS_NOT_ENFORCED
    return (PlannedEvent(reference(gang), reason, new.message, warning=True),)


def _facts(
    snapshot: Snapshot,
    gang: Gang,
    found: PodGang,
    scheduler_objects: SchedulerObjects,
    placed: bool,
    nodes: Mapping[str, Mapping[str, str]] | None,
) -> EnforcementFacts | None:
    """The facts about a gang; None if it has no constraints. `nodes` has the labels of its pods' nodes."""
    attempt = recorded(found.metadata.annotations, len(snapshot.fallback_topologies)).attempt if placed else 0
    template = next(islice(attempts(snapshot.workload.spec.template), attempt, None))
    wanted, topology = domains_of_gang(template, gang), snapshot.topology_of(attempt)
    if not wanted and not requires_partition(gang):
        return None
    problem = unavailable(wanted, topology) if wanted else None
    unmet = unmet_units(found, topology, nodes)
    return EnforcementFacts(
        scheduler_objects.scheduler,
        placed,
        levels=f"{problem[2]}: pods are placed without these constraints" if problem is not None else "",
        unconfigured=scheduler_objects.unconfigured_message,
        dropped=scheduler_objects.dropped_constraints(gang.name),
        failed=scheduler_objects.error(gang.name),
        unsupported=scheduler_objects.unsupported_constraints,
        unmet=_unmet_message(unmet),
    )


def _unmet_message(units: Mapping[str, str]) -> str:
    if not units:
        return ""
    parts = ", ".join(f"{name} ({key})" for name, key in sorted(units.items()))
    return (
        f"Pods are not on nodes of one required domain: {parts}. Nodes were relabelled, the level has "
        "another label, or the pods are older than the constraint; they stay until they are deleted"
    )
