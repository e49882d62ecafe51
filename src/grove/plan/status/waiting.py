"""Why the pods of a replica wait: by gang, clique and group, and as a roll-up for the set.

What is observed of pods, errors and fabric domains is combined with what placement and schedulers say about a
gang. Nothing is computed for a replica all of whose pods are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.conditions import ConditionType
from grove.api.types.common import LastError
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan.cliques.health import CliqueHealth
from grove.plan.cliques.state import CliqueState
from grove.plan.conditions import Conditions, find, merge_conditions, new_condition, without
from grove.plan.desired.expand import Clique, Gang, ReplicaLayout
from grove.plan.desired.startup_order import StartupParents
from grove.plan.fabric.channels import channel_shortage
from grove.plan.fabric.problems import problems_of
from grove.plan.fabric.replica_domains import waits_for_domain
from grove.plan.gang.status import missing_labels
from grove.plan.model import PlannedEvent, UserError
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import reference
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.errors import error_reasons
from grove.reasons.graph_remedies import adapted_to
from grove.reasons.model import ObjectName, WaitReason, first
from grove.reasons.pods import pods_reasons, unready, waits_in_init_container
from grove.reasons.rollup import NOTHING, Rollup, of_gangs
from grove.reasons.texts import SUMMARIES

_DOMAIN_CODES = {
    DomainState.NOT_SERVED: Code.COMPUTE_DOMAIN_CRD_MISSING,
    DomainState.OUTDATED: Code.COMPUTE_DOMAIN_CRD_OUTDATED,
    DomainState.NO_GROUP: Code.COMPUTE_DOMAIN_FAILED,
    DomainState.TERMINATING: Code.COMPUTE_DOMAIN_TERMINATING,
    DomainState.CONFLICT: Code.COMPUTE_DOMAIN_CONFLICT,
    DomainState.TEMPLATE_CONFLICT: Code.COMPUTE_DOMAIN_CONFLICT,
}


class ReplicaReasons(Struct, frozen=True):
    """The first reason of each gang, clique and group that waits, and all of them for the set."""

    of_gangs: Mapping[str, WaitReason] = {}
    of_cliques: Mapping[str, WaitReason] = {}
    of_groups: Mapping[str, WaitReason] = {}
    rollup: Rollup = NOTHING


NO_REASONS = ReplicaReasons()


class WaitingFacts(Struct, frozen=True):
    """What the plan of a replica found out."""

    views: Mapping[str, CliqueHealth]
    cliques: Mapping[str, CliqueState]
    scheduling: Callable[[str], Iterable[WaitReason]]
    """By gang, what placement and schedulers say."""
    parents_of: Callable[[Clique], StartupParents]
    startup_errors: tuple[UserError, ...]
    """Why pods with a startup order are not created. Nothing retries, so that no later pass would read them
    from the statuses of cliques."""
    exhausted: Mapping[str, str]
    """By gang, why it is not restarted any more."""
    rollout: RolloutPlanner
    now: float


def replica_reasons(snapshot: Snapshot, layout: ReplicaLayout, facts: WaitingFacts) -> ReplicaReasons:
    """Why the pods of a replica wait; nothing if all of them are ready."""
    waiting = [view.wanted for view in facts.views.values() if not view.ready]
    if not waiting:
        return NO_REASONS
    by_clique = {clique.name: list(_clique_reasons(snapshot, clique, facts)) for clique in waiting}
    of_scheduling = _scheduling_reasons(snapshot, layout, facts, by_clique)
    unscheduled = {each.name for each in waiting if facts.views[each.name].count.scheduled < each.replicas}
    adapt = adapted_to(snapshot.workload.metadata)
    gangs = {
        gang.name: adapt(found)
        for gang in layout.gangs
        if (found := _gang_reason(gang, by_clique, of_scheduling, unscheduled, facts)) is not None
    }
    cliques = {
        each.name: adapt(found)
        for each in waiting
        if (found := _clique_reason(each, by_clique, of_scheduling, unscheduled, facts)) is not None
    }
    return ReplicaReasons(
        gangs,
        cliques,
        {name: adapt(found) for name, found in _group_reasons(snapshot, layout, cliques, facts)},
        of_gangs(map(_named, gangs.items())),
    )


def _named(gang: tuple[str, WaitReason]) -> WaitReason:
    name, reason = gang
    return reason if reason.about is not None else replace(reason, about=ObjectName(PodGang.KIND.name, name))


def _gang_reason(
    gang: Gang,
    by_clique: Mapping[str, Sequence[WaitReason]],
    of_scheduling: Mapping[str, Sequence[WaitReason]],
    unscheduled: set[str],
    facts: WaitingFacts,
) -> WaitReason | None:
    found = [each for clique in gang.cliques for each in by_clique.get(clique.name, ())]
    if any(clique.name in unscheduled for clique in gang.cliques):
        found += of_scheduling.get(gang.name, ())
    return first([*found, *_exhausted(gang.name, facts)])


def _clique_reason(
    clique: Clique,
    by_clique: Mapping[str, Sequence[WaitReason]],
    of_scheduling: Mapping[str, Sequence[WaitReason]],
    unscheduled: set[str],
    facts: WaitingFacts,
) -> WaitReason | None:
    of_gang = _exhausted(clique.gang, facts)
    if clique.name in unscheduled:
        of_gang += of_scheduling.get(clique.gang, ())
    return first([*by_clique[clique.name], *(_named((clique.gang, each)) for each in of_gang)])


def _exhausted(gang: str, facts: WaitingFacts) -> list[WaitReason]:
    message = facts.exhausted.get(gang)
    return [WaitReason(Code.TERMINATION_BUDGET_SPENT, message)] if message else []


def _group_reasons(
    snapshot: Snapshot, layout: ReplicaLayout, cliques: Mapping[str, WaitReason], facts: WaitingFacts
) -> Iterator[tuple[str, WaitReason]]:
    for group in layout.groups:
        members = [
            each for each in layout.cliques if each.group is not None and each.group.name == group.name
        ]
        found = [cliques[each.name] for each in members if each.name in cliques]
        if (known := snapshot.groups.get(group.name)) is not None:
            about = ObjectName(PodCliqueScalingGroup.KIND.name, group.name)
            ready = all(facts.views[each.name].ready for each in members)
            found += error_reasons(known.status.last_errors, about, pods_ready=ready)
        step = facts.rollout.group_steps.get(group.name)
        found += _overdue(step is not None and step.overdue)
        if (reason := first(found)) is not None:
            yield group.name, reason


def _scheduling_reasons(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    facts: WaitingFacts,
    by_clique: Mapping[str, Sequence[WaitReason]],
) -> dict[str, list[WaitReason]]:
    """What keeps all pods of a gang from being scheduled. A gang is not begun while a clique waits for its
    domain: that is then the reason of all of its cliques."""
    found: dict[str, list[WaitReason]] = {}
    for gang in layout.gangs:
        reasons = found[gang.name] = list(facts.scheduling(gang.name))
        if shortage := channel_shortage(gang):
            reasons.append(WaitReason(Code.ONE_MEMBER_POD_PER_NODE, shortage))
        known = snapshot.gangs.get(gang.name)
        if known is None:
            waiting = (clique.name for clique in gang.cliques if waits_for_domain(clique))
            reasons += (each for name in waiting for each in by_clique.get(name, ()))
        if known is not None and (labels := missing_labels(known, snapshot.unused_labels)):
            message = f"no node has the label {' or '.join(labels)} of a required level"
            reasons.append(WaitReason(Code.TOPOLOGY_LABEL_MISSING, message))
    return found


def _clique_reasons(snapshot: Snapshot, clique: Clique, facts: WaitingFacts) -> Iterator[WaitReason]:
    """What is wrong with a clique itself: errors, fabric domains, pods, its rollout."""
    known, about = snapshot.cliques.get(clique.name), ObjectName(PodClique.KIND.name, clique.name)
    yield from error_reasons(known.status.last_errors if known is not None else (), about)
    for each in facts.startup_errors:
        if each.regarding is not None and each.regarding.name == clique.name:
            yield from error_reasons((LastError(each.code, each.message, ""),), about)
    view, pods = facts.views[clique.name], list(unready(facts.cliques[clique.name].pods))
    for domain in clique.fabric_domains:
        yield from _domain_reasons(domain, view, facts.now, {pod.spec.node_name for pod in pods})
    yield from pods_reasons(pods)
    if any(map(waits_in_init_container, pods)):
        yield from _startup_reasons(facts.parents_of(clique), facts.views)
    step = facts.rollout.clique_steps.get(clique.name)
    yield from _overdue(step is not None and step.overdue)


def _domain_reasons(
    domain: ResolvedDomain, view: CliqueHealth, now: float, nodes: Set[str]
) -> Iterator[WaitReason]:
    """What a clique waits for in its domain. `nodes`: those of its pods that are not ready."""
    about = ObjectName(domain.provider.api.name, domain.name)
    problems = {each.reason: each.message for each in problems_of(domain, now)}
    if domain.state is not DomainState.USABLE:
        code = _DOMAIN_CODES.get(domain.state, Code.COMPUTE_DOMAIN_NOT_READY)
        if code is Code.COMPUTE_DOMAIN_NOT_READY and domain.report.failure is not None:
            code = Code.COMPUTE_DOMAIN_FAILED
        if Reason.CLAIM_NOT_CREATED in problems:
            code = Code.CLAIM_NOT_CREATED
        yield WaitReason(code, f"{SUMMARIES[code]}, and PodClique {view.wanted.name} needs it", about)
    elif domain.report.busy and view.count.scheduled < view.wanted.replicas:
        yield WaitReason(Code.IMEX_CHANNEL_BUSY, domain.report.busy, changing=True)
    elif Reason.NODE_HELD in problems and any(held.name in nodes for held in domain.pods.held):
        yield WaitReason(Code.NODE_HELD_BY_OTHER_DOMAIN, problems[Reason.NODE_HELD], changing=True)
    elif domain.found is not None and view.count.scheduled:
        seen = domain.provider.observe(domain.found)
        total = max(seen.total_nodes, len(domain.pods.nodes.union(seen.nodes)))
        if seen.ready_nodes < total:
            message = f"{seen.ready_nodes} of {total} nodes are ready"
            yield WaitReason(Code.COMPUTE_DOMAIN_NOT_READY, message, about, changing=True)


def _startup_reasons(parents: StartupParents, views: Mapping[str, CliqueHealth]) -> Iterator[WaitReason]:
    for name, needed in parents.items():
        ready = views[name].count.ready if name in views else 0
        if ready < needed:
            message = f"waits for PodClique {name}: {ready} of {needed} pods are ready"
            yield WaitReason(Code.INIT_CONTAINER_WAITS, message, changing=True)
            return


def _overdue(overdue: bool) -> list[WaitReason]:
    return [WaitReason(Code.PROGRESS_DEADLINE_EXCEEDED)] if overdue else []


# The condition.


def with_reason(
    known: Conditions, reason: WaitReason | None, now: float, *, brief: bool = False
) -> Conditions:
    """The conditions with the reason, or without the condition if there is none. `brief`: without numbers
    that change, where the gang has them."""
    if reason is None:
        return without(known, ConditionType.WAITING)
    line = reason.stable_line if brief and reason.changing else reason.line
    return merge_conditions(known, (new_condition(ConditionType.WAITING, True, reason.code, line),), now)


def waiting_events(gang: PodGang, reason: WaitReason | None) -> tuple[PlannedEvent, ...]:
    """The event of a gang that waits for something else than its status says."""
    before = find(gang.status.conditions, ConditionType.WAITING)
    if reason is None or (before is not None and before.reason == reason.code):
        return ()
    return (PlannedEvent(reference(gang), reason.code.value, reason.line, warning=True),)
