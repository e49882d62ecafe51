"""Whether a workload is healthy, in one word. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import GangPhase, PodGang
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.status import READY
from grove.explanation.findings import waits
from grove.explanation.subtree import POD, Subtree
from grove.plan.members import pod_state
from grove.reasons.codes import MOMENTARY, ReasonCode
from grove.reasons.model import WaitReason
from grove.views.status.model import Verdict

_FAILURES = frozenset(
    {
        ReasonCode.DECODE_FAILED,
        ReasonCode.PLAN_FAILED,
        ReasonCode.IMAGE_PULL_FAILED,
        ReasonCode.CONTAINER_NOT_CREATED,
        ReasonCode.CONTAINER_CRASHING,
        ReasonCode.POD_FAILED,
        ReasonCode.TERMINATION_BUDGET_SPENT,
        ReasonCode.PROGRESS_DEADLINE_EXCEEDED,
    }
)
_BROKEN_DOMAINS = frozenset({"Degraded", "Conflict", "FabricSplit", "ComputeDomainRecreated"})
"""Phases, and reasons why pods that run cannot use their domain."""
_FAILED, _SUCCESSFUL = "failed", "successful"
_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def verdict(tree: Subtree, reasons: Iterable[WaitReason], now: float) -> Verdict:
    """The verdict on an object; `reasons` are all that are known for it to wait."""
    known = list(reasons)
    if any(each.code == ReasonCode.NO_OPERATOR_LEADING for each in known):
        return Verdict.UNKNOWN
    if _is_terminating(tree):
        return Verdict.TERMINATING
    found = [_of_graph(tree.graph)] if tree.about.kind == DynamoGraphDeployment.KIND.name else []
    if tree.workload is not None or not found:
        found.append(_of_workload(tree, known, now))
    return max(found, key=_RANKS.__getitem__)


def _is_terminating(tree: Subtree) -> bool:
    about = tree.about.kind, tree.about.name
    return any(
        meta.deletion_timestamp is not None for kind, meta in tree.named() if (kind, meta.name) == about
    )


def _of_graph(graph: DynamoGraphDeployment | None) -> Verdict:
    """What the status of a graph says."""
    if graph is None:
        return Verdict.PROGRESSING
    ready = condition(graph.status.conditions, READY)
    if graph.status.state == _FAILED:
        return Verdict.DEGRADED
    if graph.metadata.generation > graph.status.observed_generation:
        return Verdict.PROGRESSING
    if graph.status.state == _SUCCESSFUL or (ready is not None and ready.status == "True"):
        return Verdict.HEALTHY
    return Verdict.PROGRESSING


def _of_workload(tree: Subtree, reasons: list[WaitReason], now: float) -> Verdict:
    waiting = waits(tree)
    if any(each.code in _FAILURES for each in reasons) or _has_failed(tree, waiting=waiting):
        return Verdict.DEGRADED
    if any(_lasts(each, now) for each in reasons):
        return Verdict.WAITING
    if waiting or (tree.workload is not None and _is_in_progress(tree.workload)):
        return Verdict.PROGRESSING
    return Verdict.HEALTHY


def _has_failed(tree: Subtree, *, waiting: bool) -> bool:
    """Whether statuses and pods report a failure that is no reason to wait."""
    workload = tree.workload
    if tree.about.kind == POD:
        return any(pod_state.ended(pod) and pod.status.phase == GangPhase.FAILED for pod in tree.pods)
    if any(_is_unhealthy(gang) for gang in tree.gangs):
        return True
    if workload is None:
        return False
    domains = workload.status.compute_domains
    if any(not _BROKEN_DOMAINS.isdisjoint((each.phase, each.reason)) for each in domains):
        return True
    errors = [workload.status.last_errors]
    errors += (each.status.last_errors for each in tree.groups)
    errors += (each.status.last_errors for each in tree.cliques)
    return not waiting and (any(errors) or _is_unenforced(workload.status.conditions))


def _is_unhealthy(gang: PodGang) -> bool:
    unhealthy = condition(gang.status.conditions, ConditionType.UNHEALTHY)
    return gang.status.phase == GangPhase.FAILED or (unhealthy is not None and unhealthy.status == "True")


def _is_unenforced(conditions: Iterable[Condition]) -> bool:
    enforced = condition(conditions, ConditionType.CONSTRAINTS_ENFORCED)
    return enforced is not None and enforced.status == "False"


def _lasts(reason: WaitReason, now: float) -> bool:
    """Whether pods wait, and not only for the moment that is usual."""
    if reason.code not in MOMENTARY:
        return True
    return bool(reason.since) and now - reason.since > timing.MOMENT


def _is_in_progress(workload: PodCliqueSet) -> bool:
    """Whether a change of the set has not reached all its replicas."""
    status = workload.status
    if workload.metadata.generation > status.observed_generation:
        return True
    return status.update_progress is not None and status.update_progress.update_ended_at is None


def condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of a type."""
    return next((each for each in conditions if each.type == type_), None)
