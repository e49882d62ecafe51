"""Plans one replica of a set (`plan_replica`): creates missing objects, repairs changed ones, deletes surplus
ones.

    service, groups -> cliques -> claims -> gangs -> pods
                       `-> autoscalers

Each arrow is a dependency: the right side is created after the left side. A gang names its pods before they
are created, and drops them before they are deleted (see `members.membership` and `gang.planner`).
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import uid_of
from grove.api.types.podclique import PodClique
from grove.plan.autoscaling import plan_autoscalers
from grove.plan.desired import limits
from grove.plan.desired.expand import Clique, ReplicaLayout, expand
from grove.plan.desired.template_hash import generation_hash
from grove.plan.fabric.replica_domains import domain_errors
from grove.plan.gang.planner import GangPlanner
from grove.plan.gang.startup_dependencies import StartupDependencies
from grove.plan.members.clique_state import CliqueState, MembershipPlanner
from grove.plan.members.force_delete import force_deletes
from grove.plan.model import Plan, ReplicaSummary
from grove.plan.ownership.ownership import PodsByClique, keep_owned
from grove.plan.ownership.repair import ObjectRepair
from grove.plan.ownership.upstream_adoption import remove_legacy_finalizers
from grove.plan.resource_claims import ClaimPlanner
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.scale_in import delete_surplus, plan_scale_in
from grove.plan.snapshot import Snapshot
from grove.plan.status.summary import replica_summary, status_updates
from grove.plan.termination.policy import TerminationPlanner
from grove.plan.writes.collector import WriteCollector


def plan_replica(snapshot: Snapshot, now: float) -> Plan:
    """Returns the plan for one replica."""
    writes = WriteCollector(remove_legacy_finalizers(snapshot))
    workload, pods_by_clique = snapshot.workload, PodsByClique(snapshot.pods)
    if workload.metadata.deletion_timestamp is not None:
        return Plan(writes.intents())  # `grove.plan.deletion` deletes everything
    if snapshot.index >= workload.spec.replicas:
        return plan_scale_in((snapshot,), now)
    return _plan_existing(keep_owned(snapshot), pods_by_clique, writes, now)


def plan_terminating_namespace(snapshot: Snapshot, now: float) -> Plan:
    """Returns the plan for a replica in a terminating namespace, where nothing can be created: removes
    finalizers that would block the namespace, and publishes statuses."""
    plan = plan_replica(snapshot, now)
    return replace(plan, intents=tuple(remove_legacy_finalizers(snapshot)), requeue_at=None)


def _plan_existing(
    snapshot: Snapshot, pods_by_clique: PodsByClique, writes: WriteCollector, now: float
) -> Plan:
    """Plans a replica with an index below spec.replicas."""
    held = limits.present(snapshot) if snapshot.held else None
    if held is not None and not held.cliques:
        nothing = ReplicaSummary(generation_hash=generation_hash(snapshot.workload), update_complete=True)
        return Plan(report=nothing, errors=limits.errors(snapshot), partial=True)
    layout = _layout(snapshot, held)
    repair = ObjectRepair(snapshot, layout, pods_by_clique, writes)
    repair.plan_parents()
    planner = MembershipPlanner(snapshot, pods_by_clique, now)

    def decide_members(clique: Clique, replaced: frozenset[str] = frozenset()) -> CliqueState:
        return planner.decide_members(clique, _uid(snapshot, repair, clique.name), replaced)

    rollout, termination = (
        RolloutPlanner(snapshot, writes, decide_members),
        TerminationPlanner(snapshot, layout, writes, decide_members, now),
    )
    clique_states = {clique.name: decide_members(clique) for clique in layout.cliques}
    cliques = termination.plan(rollout.plan(layout, clique_states, now), rollout)
    dependencies, claims = StartupDependencies(snapshot, layout), ClaimPlanner(snapshot, repair, writes)
    claims.plan(layout, cliques)
    gang_planner = GangPlanner(
        snapshot, cliques, repair, dependencies, claims, writes, termination.annotations
    )
    for gang in layout.gangs:
        gang_planner.plan(gang)
    delete_surplus(snapshot, layout, pods_by_clique, writes)
    claims.delete_surplus(layout, cliques)
    plan_autoscalers(snapshot, layout, repair, writes)
    all_pods = [pod for clique in cliques.values() for pod in clique.pods]
    deletes, force_delete_at = force_deletes(snapshot.workload, all_pods, now)
    writes.add_all(deletes)
    # Pods that an update or a termination replaces still exist: statuses count them until they are deleted.
    views = {name: clique.view for name, clique in clique_states.items()}
    members = {gang.name: [clique.name for clique in gang.cliques] for gang in layout.gangs}
    was_scheduled = any(map(termination.was_scheduled, cliques.values()))
    summary = replica_summary(
        layout, views, rollout, was_scheduled, gang_planner.scheduler_objects.unconfigured_scheduler
    )
    if held is not None and not limits.is_complete(snapshot, held):
        summary = replace(summary, available=False, updated=False)
    return Plan(
        writes.intents() if held is None else limits.without_additions(writes.intents()),
        status_updates(
            snapshot, layout, views, rollout, termination, gang_planner.scheduler_objects.pending_reasons, now
        ),
        _earliest(rollout.requeue_at, termination.requeue_at, force_delete_at, _requeue_at(cliques)),
        summary,
        tuple(gang_planner.awaiting_placement),
        (
            *dependencies.errors(layout.cliques),
            *claims.errors,
            *gang_planner.scheduler_objects.errors(members),
            *domain_errors(layout.cliques),
            *(limits.errors(snapshot) if held is not None else ()),
        ),
        tuple(termination.events),
        partial=held is not None,
    )


def _layout(snapshot: Snapshot, held: limits.Present | None) -> ReplicaLayout:
    groups = {name: group.spec.replicas for name, group in snapshot.groups.items()}
    cliques = {name: clique.spec.replicas for name, clique in snapshot.cliques.items()}
    return expand(snapshot.workload, snapshot.index, groups, cliques, snapshot.domains, held)


def _uid(snapshot: Snapshot, repair: ObjectRepair, clique: str) -> str:
    if (found := snapshot.cliques.get(clique)) is not None:
        return found.metadata.uid
    created = repair.created(PodClique.KIND, clique)
    assert created is not None
    return uid_of(created)


def _requeue_at(cliques: dict[str, CliqueState]) -> float | None:
    times = [clique.membership.requeue_at for clique in cliques.values()]
    return min((time for time in times if time is not None), default=None)


def _earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)
