"""Plans one replica of a set (`plan_replica`): creates missing objects, repairs changed ones, deletes surplus
ones.

    service, groups -> cliques -> claims -> gangs -> pods
                       `-> autoscalers

Each arrow is a dependency: the right side is created after the left side. A gang names its pods before they
are created, and drops them before they are deleted (see `members.membership` and `gang.planner`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.types.podclique import PodClique
from grove.plan.autoscaling import plan_autoscalers
from grove.plan.cliques.force_delete import force_deletes
from grove.plan.cliques.health import CliqueHealth
from grove.plan.cliques.state import CliqueState, MembershipPlanner
from grove.plan.desired import limits
from grove.plan.desired.expand import Clique, ReplicaLayout, expand
from grove.plan.desired.template_hash import generation_hash
from grove.plan.fabric.channels import first_shortage
from grove.plan.fabric.pod_counts import count_domain_pods
from grove.plan.fabric.replica_domains import domain_errors
from grove.plan.gang.enforcement import enforced_constraints, of_replica
from grove.plan.gang.placement_status import placement_events
from grove.plan.gang.planner import GangPlanner
from grove.plan.gang.startup_dependencies import StartupDependencies
from grove.plan.members.lost_pods import restore_labels
from grove.plan.model import Plan, ReplicaSummary
from grove.plan.ownership.ownership import PodsByClique, keep_owned
from grove.plan.ownership.repair import ObjectRepair
from grove.plan.ownership.upstream_adoption import remove_legacy_finalizers
from grove.plan.placement.assignment import failed_gangs
from grove.plan.resource_claims import ClaimPlanner
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.scale_in import delete_surplus, plan_scale_in
from grove.plan.snapshot import Snapshot
from grove.plan.status.summary import replica_summary, status_updates
from grove.plan.status.waiting import WaitingFacts, replica_reasons
from grove.plan.termination.decision import TerminationDecision, decide_terminations
from grove.plan.termination.effects import TerminationEffects, exhausted_messages, plan_effects
from grove.plan.termination.history import TerminationHistory
from grove.plan.timestamps import earliest
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.events import pod_deleted


def plan_replica(snapshot: Snapshot, now: float) -> Plan:
    """Returns the plan for one replica."""
    writes = WriteCollector(remove_legacy_finalizers(snapshot))
    workload, pods_by_clique = snapshot.workload, PodsByClique(snapshot.pods)
    if workload.metadata.deletion_timestamp is not None:
        return Plan(writes.intents())  # `grove.plan.deletion` deletes everything
    if snapshot.index >= workload.spec.replicas:
        return plan_scale_in((snapshot,), now)
    if snapshot.lost_pods:
        return Plan(tuple(map(restore_labels, snapshot.lost_pods)))
    plan = _plan_existing(keep_owned(snapshot), pods_by_clique, writes, now)
    if snapshot.namespace_terminating:
        # Nothing can be created there: only finalizers that would block the namespace are removed.
        return replace(plan, intents=tuple(remove_legacy_finalizers(snapshot)), requeue_at=None)
    return plan


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
    members = _plan_members(snapshot, layout, repair, pods_by_clique, writes, now)
    cliques, rollout, termination = members.cliques, members.rollout, members.termination
    dependencies, claims = StartupDependencies(snapshot, layout), ClaimPlanner(snapshot, repair, writes)
    claims.plan(layout, cliques)
    gang_planner = GangPlanner(
        snapshot,
        layout.gangs,
        cliques,
        repair,
        dependencies,
        claims,
        writes,
        termination.annotations,
        members.history.was_scheduled,
    )
    for gang in layout.gangs:
        gang_planner.plan(gang)
    demands = tuple(gang_planner.placements.demands)
    if gang_planner.awaits_decision and _is_new(snapshot):
        # All of it is written and reported in one pass, so that placement costs no call: first pods need no
        # events, and the set need not be confirmed before objects that it never had are created.
        # No event says that volumes or devices cannot be listed.
        listed = gang_planner.placements.needs_listed
        check_at = None if listed else now + timing.PLACEMENT_LIST_CHECK
        return Plan(placement_demands=demands, requeue_at=check_at)
    delete_surplus(snapshot, layout, pods_by_clique, writes)
    obsolete, retry_at = gang_planner.scheduler_objects.obsolete.plan_deletes(now)
    writes.add_all(obsolete)
    claims.delete_surplus(layout, cliques)
    plan_autoscalers(snapshot, layout, repair, writes)
    enforced = enforced_constraints(
        snapshot,
        layout.gangs,
        gang_planner.scheduler_objects,
        gang_planner.placements.placed,
        gang_planner.preferred_partitions,
    )
    exhausted = exhausted_messages(members.decision)
    startup_errors = dependencies.errors(layout.cliques)
    reasons = replica_reasons(
        snapshot,
        layout,
        WaitingFacts(
            members.views,
            cliques,
            gang_planner.reasons_of,
            dependencies.parents_of,
            startup_errors,
            exhausted,
            rollout,
            now,
        ),
    )
    deletes, force_delete_at = force_deletes(snapshot.workload, cliques.values(), now)
    writes.add_all(deletes)
    writes.events += map(pod_deleted, deletes)
    plan = Plan(
        writes.intents() if held is None else limits.without_additions(writes.intents()),
        status_updates(
            snapshot,
            layout,
            members.views,
            rollout,
            members.history,
            exhausted,
            gang_planner.scheduler_objects.pending_reasons,
            gang_planner.placements.placed,
            enforced,
            reasons,
            now,
        ),
        events=(
            *writes.events,
            *termination.events,
            *gang_planner.scheduler_objects.events(layout.gangs),
            *placement_events(snapshot),
        ),
        errors=(
            *startup_errors,
            *claims.errors,
            *gang_planner.scheduler_objects.errors(layout.gangs),
            *domain_errors(snapshot.workload, layout.cliques),
            *(limits.errors(snapshot) if held is not None else ()),
        ),
        requeue_at=earliest(
            rollout.requeue_at,
            members.decision.requeue_at,
            force_delete_at,
            snapshot.priority.due,
            retry_at,
            *(clique.membership.requeue_at for clique in cliques.values()),
        ),
        report=replace(
            _summary(snapshot, layout, members, held, gang_planner.scheduler_objects.unconfigured_scheduler),
            enforced=of_replica(enforced),
            waiting=reasons.rollup,
            channel_shortage=first_shortage(layout.gangs, members.views),
            domain_pods=count_domain_pods(members.views.values()),
        ),
        placement_demands=demands,
        demands_complete=gang_planner.placements.needs_listed,
        partial=held is not None or gang_planner.scheduler_objects.holds_new_gangs,
        only_statuses_left=len(layout.gangs) == 1 and not (gang_planner.holds_pods or rollout.running),
    )
    if gang_planner.awaits_successors and gang_planner.placements.needs_listed:
        # Pods are deleted in the pass that creates their successors, with one event for both and one write
        # of the gang. Nothing is written before, so that the next plan takes the same decisions.
        due = earliest(plan.requeue_at, now + timing.SUCCESSOR_WAIT)
        return replace(plan, intents=(), status_updates=(), report=None, requeue_at=due, awaits_round=True)
    return plan


def _is_new(snapshot: Snapshot) -> bool:
    """Whether nothing of the replica exists yet."""
    return not (snapshot.groups or snapshot.cliques or snapshot.gangs or snapshot.pods)


class _MemberPlan(Struct, frozen=True):
    """The members of a replica's cliques, and the decisions that they follow from."""

    views: dict[str, CliqueHealth]
    """The health of each clique. Pods that an update or a termination replaces still exist: statuses count
    them until they are deleted."""
    rollout: RolloutPlanner
    history: TerminationHistory
    decision: TerminationDecision
    termination: TerminationEffects

    @property
    def cliques(self) -> Mapping[str, CliqueState]:
        """The cliques with the members that they should have."""
        return self.termination.cliques


def _plan_members(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    repair: ObjectRepair,
    pods_by_clique: PodsByClique,
    writes: WriteCollector,
    now: float,
) -> _MemberPlan:
    """Decides the members of each clique; then which of them an update replaces, and which gangs are
    terminated."""
    planner = MembershipPlanner(snapshot, pods_by_clique, layout.generation_hash, now)

    def decide_members(clique: Clique, replaced: frozenset[str] = frozenset()) -> CliqueState:
        return planner.decide_members(clique, repair.parent(PodClique.KIND, clique.name)[0], replaced)

    failed = failed_gangs(snapshot.placements)
    states = {clique.name: decide_members(clique) for clique in layout.cliques}
    states |= {
        name: decide_members(state.wanted, frozenset(state.membership.references))
        for name, state in states.items()
        if state.wanted.gang in failed
    }
    rollout, history = RolloutPlanner(snapshot, writes, decide_members), TerminationHistory(snapshot)
    updated = rollout.plan(layout, states, now)
    decision = decide_terminations(snapshot, layout, updated, history, rollout.in_progress, now)
    termination = plan_effects(decision, snapshot, updated, history, writes, decide_members, now)
    views = {name: state.view for name, state in states.items()}
    return _MemberPlan(views, rollout, history, decision, termination)


def _summary(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    members: _MemberPlan,
    held: limits.Present | None,
    unconfigured_scheduler: str,
) -> ReplicaSummary:
    was_scheduled = any(map(members.history.was_scheduled, members.cliques.values()))
    summary = replica_summary(layout, members.views, members.rollout, was_scheduled, unconfigured_scheduler)
    if held is not None and not limits.is_complete(snapshot, held):
        return replace(summary, available=False, updated=False)
    return summary


def _layout(snapshot: Snapshot, held: limits.Present | None) -> ReplicaLayout:
    groups = {name: group.spec.replicas for name, group in snapshot.groups.items()}
    cliques = {name: clique.spec.replicas for name, clique in snapshot.cliques.items()}
    return expand(snapshot.workload, snapshot.index, groups, cliques, snapshot.domains, held)
