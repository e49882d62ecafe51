"""The plan for a topology: every scheduler that keeps one of its own is brought in step, or compared.

no reference    the scheduler's object is ours: made, made anew, repaired
a reference     it is somebody else's: compared, never written
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import ConditionType, DriftReason
from grove.api.intents import Intent
from grove.api.meta import Condition
from grove.api.topology import ClusterTopologyBinding, SchedulerTopologyStatus, TopologyStatus, TopologyUsers
from grove.plan.facts import Facts, settle, without
from grove.plan.model import Draft, Plan
from grove.plan.targets import target
from grove.schedulers.backend import AnyTopology, Foreign, Sync, TopologyAware
from grove.topology.census import census

_SHADOWED = "ClusterTopologyOfSameName"
_MOST_USERS = 20


class Counterpart(Struct, frozen=True):
    """A scheduler that knows topologies, and what it has of this one."""

    backend: TopologyAware
    served: bool
    """Whether the cluster serves its kind of topology."""
    reference: str = ""
    """The object that somebody else manages; empty: we manage one."""
    found: Foreign | None = None
    left: Foreign | None = None
    """One that we managed before somebody else did."""
    error: str = ""
    """Why it could not be brought in step the last time."""


class Surroundings(Struct, frozen=True):
    """What else there is to say about a topology: an observation, nothing depends on it."""

    nodes: tuple[Mapping[str, str], ...] | None = None
    """The labels of all nodes, as far as they matter; None: nobody has looked yet."""
    users: tuple[str, ...] = ()
    """The sets that name it."""


_NOTHING_SEEN = Surroundings()


def plan_topology(
    topology: AnyTopology,
    counterparts: Sequence[Counterpart],
    enabled: Collection[str],
    now: float,
    seen: Surroundings = _NOTHING_SEEN,
) -> Plan:
    """What to do about a topology. `enabled` are all schedulers that workloads may use."""
    entries: list[SchedulerTopologyStatus] = []
    intents: list[Intent] = []
    well = True
    for each in sorted(counterparts, key=lambda each: each.backend.name):
        name = each.reference or topology.metadata.name
        try:
            name = each.reference or each.backend.topology_name(topology)
            sync = _sync(topology, each)
        except Exception as problem:  # a backend of somebody else must not cost the others theirs
            sync, well = Sync(in_sync=False, message=f"{type(problem).__name__}: {problem}"), False
        well = well and not each.error and not sync.failed
        intents += sync.intents
        entries.append(_entry(each.backend.name, name, sync, each.error))
    unknown = list(_unavailable(topology, {each.backend.name for each in counterparts}, enabled))
    news = _drift(topology, entries, unknown)
    known = without(topology.status.conditions, ConditionType.SHADOWED)
    status = replace(
        topology.status,
        conditions=_with(known, news, ConditionType.SCHEDULER_TOPOLOGY_DRIFT, now),
        scheduler_topology_statuses=(*entries, *unknown),
        used_by=_users(seen.users),
    )
    if seen.nodes is not None:
        status = replace(status, nodes=len(seen.nodes), levels=census(topology.spec.levels, seen.nodes))
    if well and not intents:
        status = replace(status, observed_generation=topology.metadata.generation)
    return Plan(tuple(intents), (_draft(topology, status),))


def plan_shadowed(binding: ClusterTopologyBinding, now: float) -> Plan:
    """What to do about a binding whose name a ClusterTopology has, too: to say so."""
    shadowed = Condition(
        type=ConditionType.SHADOWED,
        status="True",
        reason=_SHADOWED,
        message=f'ClusterTopology "{binding.metadata.name}" is used instead',
        observed_generation=binding.metadata.generation,
    )
    known = without(binding.status.conditions, ConditionType.SCHEDULER_TOPOLOGY_DRIFT)
    status = replace(
        binding.status,
        conditions=settle(known, (shadowed,), now),
        scheduler_topology_statuses=(),
        nodes=0,
        levels=(),
        used_by=None,
        observed_generation=binding.metadata.generation,
    )
    return Plan((), (_draft(binding, status),))


def _draft(found: AnyTopology, status: TopologyStatus) -> Draft:
    return Draft(target(found), found.status, status, version=found.metadata.resource_version)


def _sync(topology: AnyTopology, each: Counterpart) -> Sync:
    if not each.served:
        why = f"topology CRD for scheduler backend {each.backend.name} not found in cluster"
        return Sync(in_sync=False, message=why)
    if not each.reference:
        return each.backend.sync_topology(topology, each.found)
    sync = each.backend.check_topology_drift(topology, each.reference, each.found)
    if each.left is None:
        return sync
    goes = each.backend.on_topology_delete(each.left.metadata.name, each.left)
    return replace(sync, intents=(*sync.intents, *goes))


def _users(named: tuple[str, ...]) -> TopologyUsers:
    return TopologyUsers(count=len(named), pod_clique_sets=tuple(sorted(named)[:_MOST_USERS]))


def _entry(scheduler: str, name: str, sync: Sync, error: str = "") -> SchedulerTopologyStatus:
    told = [part for part in (sync.message, error) if part]
    return SchedulerTopologyStatus(
        scheduler_name=scheduler,
        in_sync=sync.in_sync,
        reference=name,
        topology_reference=name,
        scheduler_backend_topology_observed_version=sync.observed,
        scheduler_backend_topology_observed_generation=sync.observed,
        message=": ".join(told),
    )


def _unavailable(
    topology: AnyTopology, aware: Collection[str], enabled: Collection[str]
) -> Iterator[SchedulerTopologyStatus]:
    for scheduler, reference in topology.spec.references:
        if scheduler not in aware:
            why = "does not support topology management" if scheduler in enabled else "is not enabled"
            message = f"scheduler backend {scheduler} {why}"
            yield _entry(scheduler, reference, Sync(in_sync=False, message=message))


def _drift(
    topology: AnyTopology,
    entries: Sequence[SchedulerTopologyStatus],
    unknown: Sequence[SchedulerTopologyStatus],
) -> Condition | None:
    if not entries and not unknown:
        return None
    drifted = sum(not entry.in_sync for entry in entries)
    status, reason = "False", DriftReason.IN_SYNC
    message = "All scheduler backend topologies are in sync"
    if unknown:
        status, reason = "Unknown", DriftReason.NOT_FOUND
        message = "One or more referenced scheduler backends are unavailable for topology management"
    elif drifted:
        status, reason = "True", DriftReason.DRIFT
        message = f"One or more scheduler backend topologies have drifted: {drifted} of {len(entries)}"
    return Condition(
        type=ConditionType.SCHEDULER_TOPOLOGY_DRIFT,
        status=status,
        reason=reason,
        message=message,
        observed_generation=topology.metadata.generation,
    )


def _with(known: Facts, news: Condition | None, type_: str, now: float) -> Facts:
    return settle(known, (news,), now) if news is not None else without(known, type_)
