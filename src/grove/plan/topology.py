"""Plans a topology: every scheduler with a topology object of its own gets one, or its object is compared.

no reference    the operator manages the scheduler's object: created, replaced, repaired
a reference     another party manages it: compared, never written
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ConditionType, DriftReason, ShadowedReason
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Intent
from grove.api.meta import Condition
from grove.api.types.clustertopology import (
    ClusterTopologyBinding,
    FreeSlots,
    SchedulerTopologyStatus,
    TopologyLevelStatus,
    TopologyStatus,
    TopologyUsers,
)
from grove.api.wire import LARGEST_INT32
from grove.plan.conditions import Conditions, find, merge_conditions, without
from grove.plan.model import Plan, PlannedEvent
from grove.plan.writes.builders import reference, status_update
from grove.schedulers.backend import AnyTopology, SchedulerBackend, SchedulerObject, TopologySync
from grove.topology.level_status import level_statuses


class SchedulerTopology(Struct, frozen=True):
    """A scheduler that supports topologies, and its object for this one."""

    backend: SchedulerBackend
    served: bool
    """Whether the cluster serves the scheduler's topology kind."""
    reference: str = ""
    """The object that another party manages; empty: the operator manages one."""
    found: SchedulerObject | None = None
    previously_managed: SchedulerObject | None = None
    """The object that the operator managed before the reference was set."""
    error: str = ""
    """Why the last synchronization failed."""


class TopologyUsage(Struct, frozen=True):
    """Information for the status of a topology; no decision depends on it."""

    nodes: tuple[Mapping[str, str], ...] | None = None
    """The labels of all nodes, limited to the keys of levels; None: nodes have not been listed yet."""
    users: tuple[str, ...] = ()
    """The sets that refer to it."""
    free_slots: tuple[Mapping[int, int], ...] | None = ()
    """By level, how many slots of each number of GPUs are free; empty if the operator places no gangs.
    None: not counted yet."""
    free_slots_due: float | None = None
    """When they are counted again; None: they are up to date."""


_NO_USAGE = TopologyUsage()


def plan_topology(
    topology: AnyTopology,
    scheduler_topologies: Sequence[SchedulerTopology],
    enabled: Collection[str],
    now: float,
    usage: TopologyUsage = _NO_USAGE,
) -> Plan:
    """Returns the plan for a topology. `enabled` are all schedulers that workloads may use."""
    entries: list[SchedulerTopologyStatus] = []
    intents: list[Intent] = []
    healthy = True
    for each in sorted(scheduler_topologies, key=lambda each: each.backend.name):
        name = each.reference or topology.metadata.name
        try:
            name = each.reference or each.backend.topology_name(topology)
            sync = _sync(topology, each)
        except Exception as problem:  # the failure of one backend must not affect the others
            sync, healthy = TopologySync(in_sync=False, message=f"{type(problem).__name__}: {problem}"), False
        healthy = healthy and not each.error and not sync.failed
        intents += sync.intents
        entries.append(_entry(each.backend.name, name, sync, each.error))
    unavailable = list(_unavailable(topology, {each.backend.name for each in scheduler_topologies}, enabled))
    drift = _drift(topology, entries, unavailable)
    known = without(topology.status.conditions, ConditionType.SHADOWED)
    status = replace(
        topology.status,
        conditions=_with_condition(known, drift, ConditionType.SCHEDULER_TOPOLOGY_DRIFT, now),
        scheduler_topology_statuses=(*entries, *unavailable),
        used_by=_users(usage.users),
        domains=", ".join(level.domain for level in topology.spec.levels),
    )
    if usage.nodes is not None:
        levels = level_statuses(topology.spec.levels, usage.nodes)
        slots = {level.domain: level.free_slots for level in topology.status.levels}
        status = replace(
            status, nodes=len(usage.nodes), levels=_with_free_slots(levels, usage.free_slots, slots)
        )
    if healthy and not intents:
        status = replace(status, observed_generation=topology.metadata.generation)
    return Plan(
        tuple(intents),
        (status_update(topology, status, events=_drift_events(topology, status)),),
        requeue_at=usage.free_slots_due,
    )


def _with_free_slots(
    levels: tuple[TopologyLevelStatus, ...],
    counted: tuple[Mapping[int, int], ...] | None,
    known: Mapping[str, tuple[FreeSlots, ...]],
) -> tuple[TopologyLevelStatus, ...]:
    """The levels with their free slots; with those that the status has, until they are counted."""
    if counted is None:
        return tuple(replace(level, free_slots=known.get(level.domain, ())) for level in levels)
    if not counted:
        return levels
    return tuple(
        replace(level, free_slots=tuple(FreeSlots(size, min(n, LARGEST_INT32)) for size, n in slots.items()))
        for level, slots in zip(levels, counted, strict=True)
    )


def plan_shadowed(binding: ClusterTopologyBinding, now: float) -> Plan:
    """Returns the plan for a binding with the name of a ClusterTopology: only its condition is set."""
    shadowed = Condition(
        type=ConditionType.SHADOWED,
        status="True",
        reason=ShadowedReason.CLUSTER_TOPOLOGY_OF_SAME_NAME,
        message=f'ClusterTopology "{binding.metadata.name}" is used instead',
        observed_generation=binding.metadata.generation,
    )
    known = without(binding.status.conditions, ConditionType.SCHEDULER_TOPOLOGY_DRIFT)
    status = replace(
        binding.status,
        conditions=merge_conditions(known, (shadowed,), now),
        scheduler_topology_statuses=(),
        nodes=0,
        levels=(),
        used_by=None,
        domains="",
        observed_generation=binding.metadata.generation,
    )
    return Plan((), (status_update(binding, status),))


def _drift_events(topology: AnyTopology, status: TopologyStatus) -> tuple[PlannedEvent, ...]:
    """An event when the scheduler topologies drift from ours, or are in sync again."""
    type_ = ConditionType.SCHEDULER_TOPOLOGY_DRIFT
    before, after = find(topology.status.conditions, type_), find(status.conditions, type_)
    if after is None or after.status == "Unknown" or (before and before.status == after.status):
        return ()
    drifted = after.status == "True"
    reason = EventReason.TOPOLOGY_DRIFT if drifted else EventReason.TOPOLOGY_IN_SYNC
    about, reporter = reference(topology), EventReporter.TOPOLOGY.value
    return (PlannedEvent(about, reason.value, after.message, warning=drifted, reporter=reporter),)


def _sync(topology: AnyTopology, each: SchedulerTopology) -> TopologySync:
    if not each.served:
        why = f"topology CRD for scheduler backend {each.backend.name} not found in cluster"
        return TopologySync(in_sync=False, message=why)
    if not each.reference:
        return each.backend.sync_topology(topology, each.found)
    sync = each.backend.check_topology_drift(topology, each.reference, each.found)
    if each.previously_managed is None:
        return sync
    deletes = each.backend.on_topology_delete(each.previously_managed.metadata.name, each.previously_managed)
    return replace(sync, intents=(*sync.intents, *deletes))


def _users(named: tuple[str, ...]) -> TopologyUsers:
    return TopologyUsers(
        count=len(named), pod_clique_sets=tuple(sorted(named)[: timing.TOPOLOGY_USERS_NAMED])
    )


def _entry(scheduler: str, name: str, sync: TopologySync, error: str = "") -> SchedulerTopologyStatus:
    messages = [part for part in (sync.message, error) if part]
    return SchedulerTopologyStatus(
        scheduler_name=scheduler,
        in_sync=sync.in_sync,
        reference=name,
        topology_reference=name,
        scheduler_backend_topology_observed_version=sync.observed,
        scheduler_backend_topology_observed_generation=sync.observed,
        message=": ".join(messages),
    )


def _unavailable(
    topology: AnyTopology, aware: Collection[str], enabled: Collection[str]
) -> Iterator[SchedulerTopologyStatus]:
    for scheduler, name in topology.spec.references:
        if scheduler not in aware:
            why = "does not support topology management" if scheduler in enabled else "is not enabled"
            message = f"scheduler backend {scheduler} {why}"
            yield _entry(scheduler, name, TopologySync(in_sync=False, message=message))


def _drift(
    topology: AnyTopology,
    entries: Sequence[SchedulerTopologyStatus],
    unavailable: Sequence[SchedulerTopologyStatus],
) -> Condition | None:
    if not entries and not unavailable:
        return None
    drifted = [f"{entry.scheduler_name}: {entry.message}" for entry in entries if not entry.in_sync]
    status, reason = "False", DriftReason.IN_SYNC
    message = "All scheduler backend topologies are in sync"
    if unavailable:
        status, reason = "Unknown", DriftReason.NOT_FOUND
        message = "One or more referenced scheduler backends are unavailable for topology management"
    elif drifted:
        status, reason = "True", DriftReason.DRIFT
        counted = f"{len(drifted)} of {len(entries)}"
        message = f"One or more scheduler backend topologies have drifted: {counted}; {'; '.join(drifted)}"
    return Condition(
        type=ConditionType.SCHEDULER_TOPOLOGY_DRIFT,
        status=status,
        reason=reason,
        message=message,
        observed_generation=topology.metadata.generation,
    )


def _with_condition(known: Conditions, drift: Condition | None, type_: str, now: float) -> Conditions:
    return merge_conditions(known, (drift,), now) if drift is not None else without(known, type_)
