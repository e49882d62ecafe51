"""What cliques and groups report about themselves. Each number is counted from pods, here and now:
nothing is inferred from what another object reported earlier."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels
from grove.api.cliques import PodClique, PodCliqueStatus, PodCliqueUpdateProgress
from grove.api.conditions import CliqueReason, ConditionType, GroupReason
from grove.api.groups import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from grove.api.meta import Condition
from grove.plan.expand import Clique, Group
from grove.plan.facts import Facts, fact, find, is_true, settle, update_in_progress
from grove.plan.moments import moment
from grove.plan.tally import Tally


class CliqueView:
    """One clique as its parents see it."""

    def __init__(self, wanted: Clique, count: Tally, reached: bool = False) -> None:
        self.wanted, self.count = wanted, count
        self._reached = reached

    @property
    def needed(self) -> int:
        """How many pods must be there; scaled to 0, none."""
        return self.wanted.min_available if self.wanted.replicas else 0

    @property
    def scheduled(self) -> bool:
        """Enough pods have a node."""
        return self.count.scheduled >= self.needed

    @property
    def available(self) -> bool:
        return self.count.ready >= self.needed

    @property
    def complete(self) -> bool:
        return self.count.replicas == self.wanted.replicas

    @property
    def updated(self) -> bool:
        """Every pod is made from the latest template."""
        return self.complete and self.count.updated == self.count.replicas

    @property
    def current(self) -> bool:
        """The same, and once it was so, pods that have gone missing since make nothing outdated."""
        stays = self._reached and self.count.updated == self.count.replicas >= self.needed
        return stays or self.updated

    @property
    def breached(self) -> bool:
        return self.count.scheduled - self.count.impaired < self.needed


class Life(Struct, frozen=True, gc=False):
    """The time since a clique was last started anew."""

    born: float = 0.0
    """When that was; 0 if never."""
    over: bool = False
    """Its pods are still those of a life that is over: the next thing that happens to them is their end."""


class End(Struct, frozen=True, gc=False):
    """The latest end of a whole replica of the set, as one of its groups sees it."""

    at: float = 0.0
    """When it was started anew; 0 if never."""
    unrecovered: bool = False
    """Too few replicas of the group have had their nodes since."""


def has_had_nodes(before: PodCliqueStatus, view: CliqueView, life: Life) -> bool:
    """Whether enough pods have had their nodes since the clique was last started anew. That is remembered:
    it cannot be seen from the pods of today."""
    known = find(before.conditions, ConditionType.WAS_SCHEDULED)
    if view.wanted.replicas and view.scheduled and not life.over:
        return True
    return known is not None and known.status == "True" and moment(known.last_transition_time) >= life.born


def _of_this_life(before: PodCliqueStatus, life: Life) -> tuple[Condition, ...]:
    """The conditions without what was so before the clique was started anew."""
    return tuple(
        fact
        for fact in before.conditions
        if fact.type != ConditionType.WAS_SCHEDULED or moment(fact.last_transition_time) >= life.born
    )


def clique_status(
    clique: PodClique,
    view: CliqueView,
    progress: PodCliqueUpdateProgress | None,
    overdue: bool,
    set_name: str,
    generation_hash: str,
    life: Life,
    now: float,
) -> PodCliqueStatus:
    """A PodClique's status."""
    updating = progress is not None and progress.update_ended_at is None
    reached = view.updated and not updating
    facts = (*_clique_facts(view, updating), *_had_nodes(has_had_nodes(clique.status, view, life)))
    count, before, hash_ = view.count, clique.status, view.wanted.template_hash
    known = settle(_of_this_life(before, life), facts, now)
    selector = "" if view.wanted.group else labels.selector(labels.pods_of_clique(set_name, view.wanted.name))
    return replace(
        before,
        replicas=count.replicas,
        ready_replicas=count.ready,
        scheduled_replicas=count.scheduled,
        schedule_gated_replicas=count.gated,
        updated_replicas=count.updated,
        hpa_pod_selector=selector,
        conditions=known if view.wanted.group else _with_update(known, updating, overdue, now),
        current_pod_template_hash=hash_ if reached else before.current_pod_template_hash,
        current_pod_clique_set_generation_hash=(
            generation_hash if reached else before.current_pod_clique_set_generation_hash
        ),
        update_progress=progress,
    )


def _had_nodes(so: bool) -> tuple[Condition, ...]:
    """Said once it is so: what has never been needs no condition."""
    if not so:
        return ()
    return (fact(ConditionType.WAS_SCHEDULED, True, CliqueReason.HAD_NODES, "Enough pods have had a node"),)


def _clique_facts(view: CliqueView, updating: bool) -> tuple[Condition, Condition]:
    need, count = view.needed, view.count
    placed = f"{count.scheduled} of {view.wanted.replicas} pods are scheduled, {need} are needed"
    answering = f"{count.ready} of {view.wanted.replicas} pods are ready, {need} are needed"
    scheduled = fact(
        ConditionType.CLIQUE_SCHEDULED,
        view.scheduled,
        CliqueReason.SUFFICIENT_SCHEDULED_PODS
        if view.scheduled
        else CliqueReason.INSUFFICIENT_SCHEDULED_PODS,
        placed,
    )
    if updating:
        return scheduled, fact(
            ConditionType.MIN_AVAILABLE_BREACHED, None, CliqueReason.UPDATE_IN_PROGRESS, answering
        )
    reason = CliqueReason.SUFFICIENT_READY_PODS
    if view.breached:
        short_of_nodes = count.scheduled < need
        reason = (
            CliqueReason.SCHEDULED_REPLICAS_BELOW_MIN_AVAILABLE
            if short_of_nodes
            else CliqueReason.INSUFFICIENT_READY_PODS
        )
    breached = fact(
        ConditionType.MIN_AVAILABLE_BREACHED,
        view.breached,
        reason,
        placed if reason is CliqueReason.SCHEDULED_REPLICAS_BELOW_MIN_AVAILABLE else answering,
    )
    return scheduled, breached


def group_status(
    group: PodCliqueScalingGroup,
    wanted: Group,
    replicas: Sequence[Sequence[CliqueView]],
    progress: PodCliqueScalingGroupUpdateProgress | None,
    overdue: bool,
    set_name: str,
    generation_hash: str,
    end: End,
    now: float,
) -> PodCliqueScalingGroupStatus:
    """A PodCliqueScalingGroup's status, from the member cliques of each of its replicas."""
    updating = progress is not None and progress.update_ended_at is None
    before = group.status
    available = [views for views in replicas if all(view.scheduled and view.available for view in views)]
    updated = sum(all(view.current for view in views) for views in available)
    everything_updated = all(view.updated for views in replicas for view in views)
    return replace(
        before,
        replicas=wanted.replicas,
        scheduled_replicas=sum(all(view.scheduled for view in views) for views in replicas),
        available_replicas=len(available),
        updated_replicas=updated,
        selector=labels.selector(labels.pods_of_group(set_name, wanted.name)),
        conditions=_with_update(
            _group_facts(before.conditions, _group_breach(wanted, replicas, updating), end, now),
            updating,
            overdue,
            now,
        ),
        current_pod_clique_set_generation_hash=(
            generation_hash
            if everything_updated and not updating
            else before.current_pod_clique_set_generation_hash
        ),
        update_progress=progress,
    )


_STANDS_STILL = "It has come no further for longer than progressDeadline"


def _with_update(known: Facts, updating: bool, overdue: bool, now: float) -> Facts:
    """Whether an update goes on, and whether it still comes further."""
    return settle(known, (update_in_progress(updating, _STANDS_STILL if overdue else ""),), now)


def _group_facts(known: Facts, breach: Condition, end: End, now: float) -> Facts:
    """With a breach for which the replica was started anew, or which comes of that, comes the note that it
    was, until it is over."""
    facts = settle(known, (breach,), now)
    since = find(facts, ConditionType.MIN_AVAILABLE_BREACHED)
    assert since is not None
    noted = is_true(known, ConditionType.GANG_TERMINATION_IN_PROGRESS)
    of_it = noted or end.unrecovered or moment(since.last_transition_time) <= end.at
    if breach.status == "True" and end.at and of_it:
        said = "The replica was started anew and is not whole yet"
        active = fact(
            ConditionType.GANG_TERMINATION_IN_PROGRESS, True, GroupReason.GANG_TERMINATION_ACTIVE, said
        )
        return settle(facts, (active,), now)
    return tuple(fact for fact in facts if fact.type != ConditionType.GANG_TERMINATION_IN_PROGRESS)


def _group_breach(wanted: Group, replicas: Sequence[Sequence[CliqueView]], updating: bool) -> Condition:
    sound = sum(not any(view.breached for view in views) for views in replicas)
    need = wanted.min_available if wanted.replicas else 0
    said = f"{sound} of {wanted.replicas} replicas are sound, {need} are needed"
    if updating:
        return fact(ConditionType.MIN_AVAILABLE_BREACHED, None, GroupReason.UPDATE_IN_PROGRESS, said)
    breached = sound < need
    return fact(
        ConditionType.MIN_AVAILABLE_BREACHED,
        breached,
        GroupReason.INSUFFICIENT_AVAILABLE_REPLICAS
        if breached
        else GroupReason.SUFFICIENT_AVAILABLE_REPLICAS,
        said,
    )
