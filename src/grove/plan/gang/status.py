"""Computes the status of PodGangs: initialized, scheduled, ready, and the phase that follows."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from grove.api.conditions import SCHEDULER_MESSAGE_SEPARATOR, ConditionType, GangReason
from grove.api.formats.name_list import name_list
from grove.api.meta import Condition
from grove.api.types.podgang import GangPhase, PodGang, PodGangStatus
from grove.plan.cliques.health import CliqueHealth
from grove.plan.conditions import is_true, merge_conditions, new_condition
from grove.plan.desired.expand import Gang


def gang_status(
    gang: PodGang,
    wanted: Gang,
    views: Mapping[str, CliqueHealth],
    restarts_exhausted: str,
    message: str,
    now: float,
    channel_shortage: str = "",
    in_part: bool = False,
    missing: tuple[str, ...] = (),
    domain_problem: str = "",
) -> PodGangStatus:
    """Returns the status of a PodGang. `restarts_exhausted` says why it is not restarted any more, `message`
    is the scheduler's if it cannot place the gang, `channel_shortage` says why no scheduler could. `in_part`:
    its pods may be scheduled although there is no place for all of them. `missing`: the labels of its
    required levels that no node has. `domain_problem`: why its pods cannot use their fabric domain."""
    members = [views[clique.name] for clique in wanted.cliques]
    waiting_for_nodes = [view.wanted.name for view in members if not view.scheduled]
    waiting_for_pods = [view.wanted.name for view in members if not view.available]
    phase = GangPhase.RUNNING
    if waiting_for_pods:
        phase = GangPhase.PENDING if waiting_for_nodes else GangPhase.STARTING
    known = gang.status.conditions
    pods_created = all(view.complete for view in members) or is_true(known, ConditionType.INITIALIZED)
    new_conditions = [
        _initialized_condition(pods_created, domain_problem),
        _scheduled_condition(
            waiting_for_nodes,
            _with_missing_labels(_with_problem(message, domain_problem), missing),
            channel_shortage,
            in_part,
            bool(missing),
        ),
        _ready_condition(waiting_for_pods, domain_problem),
    ]
    if restarts_exhausted:
        new_conditions.append(
            new_condition(ConditionType.UNHEALTHY, True, GangReason.BUDGET_SPENT, restarts_exhausted)
        )
    else:
        known = tuple(condition for condition in known if condition.reason != GangReason.BUDGET_SPENT)
    return replace(gang.status, phase=phase.value, conditions=merge_conditions(known, new_conditions, now))


def _initialized_condition(pods_created: bool, domain_problem: str) -> Condition:
    return new_condition(
        ConditionType.INITIALIZED,
        pods_created,
        GangReason.PODS_CREATED if pods_created else GangReason.PODS_PENDING,
        "PodGang is fully initialized"
        if pods_created
        else _with_problem("Not all pods have been created yet", domain_problem),
    )


def _ready_condition(waiting: list[str], domain_problem: str) -> Condition:
    reason, message = GangReason.READY, _too_few_pods_message("ready", waiting)
    if waiting:
        reason, message = GangReason.NOT_READY, _with_problem(message, domain_problem)
    return new_condition(ConditionType.READY, not waiting, reason, message)


def _with_problem(message: str, problem: str) -> str:
    return SCHEDULER_MESSAGE_SEPARATOR.join(filter(None, (message, problem)))


def missing_labels(gang: PodGang, unused: frozenset[str]) -> tuple[str, ...]:
    """The labels of the gang's required levels that no node has; `unused` are those of all levels."""
    if not unused:
        return ()
    spec = gang.spec
    constraints = (
        spec.topology_constraint,
        *(part.topology_constraint for part in spec.topology_constraint_group_configs),
        *(group.topology_constraint for group in spec.pod_groups),
    )
    packs = (each.pack_constraint for each in constraints if each is not None)
    required = {pack.required for pack in packs if pack is not None}
    return tuple(sorted(required & unused))


def _with_missing_labels(message: str, missing: tuple[str, ...]) -> str:
    if not missing or all(f"no node has the label {key}" in message for key in missing):
        return message
    why = (
        f"no node has the label {' or '.join(missing)} of a required level: label nodes, or correct the level"
    )
    return f"{why}{SCHEDULER_MESSAGE_SEPARATOR}{message}" if message else why


def _scheduled_condition(
    waiting: list[str], message: str, channel_shortage: str, in_part: bool, label_missing: bool
) -> Condition:
    if waiting and channel_shortage:
        return new_condition(
            ConditionType.SCHEDULED, False, GangReason.ONE_MEMBER_POD_PER_NODE, channel_shortage
        )
    pending = GangReason.RELEASED_IN_PART if in_part else GangReason.NOT_SCHEDULED
    pending = GangReason.LABEL_MISSING if label_missing else pending
    reason = pending if waiting else GangReason.SCHEDULED
    suffix = f"{SCHEDULER_MESSAGE_SEPARATOR}{message}" if waiting and message else ""
    return new_condition(
        ConditionType.SCHEDULED, not waiting, reason, _too_few_pods_message("scheduled", waiting) + suffix
    )


def _too_few_pods_message(what: str, names: list[str]) -> str:
    if not names:
        return f"Every clique has the pods that it needs {what}"
    return f"Too few pods {what} in {name_list(names)}"
