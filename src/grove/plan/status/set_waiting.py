"""Why pods of a set wait: its own errors, its update, and what its gangs wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetStatus
from grove.plan.conditions import merge_conditions, new_condition, without
from grove.plan.model import ReplicaSummary
from grove.plan.rollout.progress import is_in_progress
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.errors import error_reasons
from grove.reasons.graph_remedies import adapted_to
from grove.reasons.model import WaitReason
from grove.reasons.rollup import Rollup, combined


def with_set_reason(
    status: PodCliqueSetStatus, workload: PodCliqueSet, summaries: Sequence[ReplicaSummary], now: float
) -> PodCliqueSetStatus:
    """The status of a set with the condition that says why pods wait, or without it if none do."""
    adapt = adapted_to(workload.metadata)
    own = [Rollup(adapt(each)) for each in _own_reasons(status, workload, summaries)]
    return _with_rollup(status, combined([*own, *(each.waiting for each in summaries)]), now)


def early_reason(status: PodCliqueSetStatus, workload: PodCliqueSet, now: float) -> PodCliqueSetStatus:
    """The status with a reason of the set itself, before every replica has reported."""
    adapt = adapted_to(workload.metadata)
    found = combined(Rollup(adapt(each)) for each in _own_reasons(status, workload, (), reported=False))
    return _with_rollup(status, found, now) if found.first is not None else status


def _with_rollup(status: PodCliqueSetStatus, found: Rollup, now: float) -> PodCliqueSetStatus:
    if found.first is None:
        return replace(status, conditions=without(status.conditions, ConditionType.WAITING))
    new = new_condition(ConditionType.WAITING, True, found.first.code, found.line)
    return replace(status, conditions=merge_conditions(status.conditions, (new,), now))


def _own_reasons(
    status: PodCliqueSetStatus,
    workload: PodCliqueSet,
    summaries: Sequence[ReplicaSummary],
    *,
    reported: bool = True,
) -> Iterator[WaitReason]:
    """Errors of the set while pods are missing or not ready, and what keeps its update from going on.
    `reported`: `summaries` are those of every replica."""
    ready = reported and all(each.ready for each in summaries)
    yield from error_reasons(status.last_errors, pods_ready=ready)
    progress = status.update_progress
    if is_in_progress(progress) and workload.spec.update_strategy.paused:
        yield WaitReason(Code.UPDATE_PAUSED)
    if stalled := sum(each.stalled for each in summaries):
        message = f"{stalled} cliques and groups made no progress within progressDeadline"
        yield WaitReason(Code.PROGRESS_DEADLINE_EXCEEDED, message, changing=True)
