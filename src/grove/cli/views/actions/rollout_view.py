"""The state of a rollout, from the status of its set. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec.structs import replace

from grove.api.conditions import ConditionType, UpdateReason
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetUpdateProgress, UpdateStrategyType
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.plan.conditions import find
from grove.plan.desired.template_hash import generation_hash, is_own_hash
from grove.views.claim_view import View


class RolloutPhase(StrEnum):
    """How far a rollout is."""

    COMPLETE = "Complete"
    NOT_OBSERVED = "NotObserved"
    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    WAITING = "Waiting"
    DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    ON_DELETE = "OnDelete"
    DELETED = "Deleted"


ENDED = frozenset(
    {RolloutPhase.COMPLETE, RolloutPhase.DEADLINE_EXCEEDED, RolloutPhase.ON_DELETE, RolloutPhase.DELETED}
)
"""Phases in which there is nothing to wait for."""


class RolloutView(View, frozen=True):
    """The rollout of one set."""

    namespace: str
    name: str
    phase: RolloutPhase
    message: str
    replicas: int
    updated_replicas: int
    available_replicas: int
    current_replica: int | None = None
    started: str | None = None
    ended: str | None = None
    errors: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.phase is RolloutPhase.COMPLETE


def rollout_view(workload: PodCliqueSet) -> RolloutView:
    """The rollout of a set, by its status."""
    status, progress = workload.status, workload.status.update_progress
    phase, message = _phase(workload)
    entries = progress.currently_updating if progress is not None else ()
    return RolloutView(
        workload.metadata.namespace,
        workload.metadata.name,
        phase,
        message,
        workload.spec.replicas,
        status.updated_replicas,
        status.available_replicas,
        next((entry.replica_index for entry in entries if entry.update_ended_at is None), None),
        progress.update_started_at if progress is not None else None,
        progress.update_ended_at if progress is not None else None,
        tuple(f"{error.code}: {error.description}" for error in status.last_errors),
    )


def _phase(workload: PodCliqueSet) -> tuple[RolloutPhase, str]:
    spec, status, name = workload.spec, workload.status, workload.metadata.name
    if workload.metadata.deletion_timestamp is not None:
        return RolloutPhase.DELETED, "the set is being deleted"
    if spec.update_strategy.type is UpdateStrategyType.ON_DELETE:
        counts = f"{status.updated_replicas} of {spec.replicas} replicas are updated"
        return RolloutPhase.ON_DELETE, f"strategy OnDelete: pods are updated when they are deleted; {counts}"
    if not _is_observed(workload):
        return RolloutPhase.NOT_OBSERVED, "the operator has not seen the latest change yet"
    if status.update_progress is not None and status.update_progress.update_ended_at is None:
        return _progress(workload, status.update_progress)
    counts = f"{status.available_replicas} of {spec.replicas} replicas are available"
    if min(status.available_replicas, status.updated_replicas) < spec.replicas:
        if status.available_replicas >= spec.replicas:
            counts = f"{status.updated_replicas} of {spec.replicas} replicas are updated"
        return RolloutPhase.WAITING, f"{counts}: grove explain {name} says what the others wait for"
    return RolloutPhase.COMPLETE, f"rolled out, {counts}"


def _is_observed(workload: PodCliqueSet) -> bool:
    """Whether the operator has decided on the latest template and the latest restarts. Restarts are requested
    by annotations, which do not change the generation. Hashes of upstream's operator cannot be computed."""
    known = workload.status.current_generation_hash
    if is_own_hash(known) and known != generation_hash(workload):
        return False
    return bool(known) and workload.status.observed_generation >= workload.metadata.generation


def _progress(workload: PodCliqueSet, progress: PodCliqueSetUpdateProgress) -> tuple[RolloutPhase, str]:
    """The phase of an update that has started and has not ended."""
    status, name = workload.status, workload.metadata.name
    counts = "; ".join(_counts(workload, progress))
    if workload.spec.update_strategy.paused:
        return RolloutPhase.PAUSED, f"paused: grove rollout resume {name} continues it; {counts}"
    condition = find(status.conditions, ConditionType.UPDATE_IN_PROGRESS)
    if condition is not None and condition.reason == UpdateReason.PROGRESS_DEADLINE_EXCEEDED:
        return RolloutPhase.DEADLINE_EXCEEDED, f"{condition.message}; {counts}"
    return RolloutPhase.PROGRESSING, counts


def _counts(workload: PodCliqueSet, progress: PodCliqueSetUpdateProgress) -> Iterator[str]:
    for entry in progress.currently_updating:
        yield f"replica {entry.replica_index} is being updated"
    parts = [f"{workload.status.updated_replicas} of {workload.spec.replicas} replicas"]
    for done, total, what in (
        (progress.updated_pod_cliques_count, progress.total_pod_cliques_count, "cliques"),
        (progress.updated_pod_clique_scaling_groups_count, progress.total_pod_clique_scaling_groups_count,
         "groups"),
    ):  # fmt: skip
        if total:
            parts.append(f"{done} of {total} {what}")
    yield f"{', '.join(parts)} are updated"


def rollout_line(view: RolloutView) -> str:
    """The rollout on one line, with the first error of the set."""
    line = f"PodCliqueSet {view.name}: {view.message}"
    if view.errors and not view.complete:
        line += f"; {view.errors[0]}"
    return line


def restart_of_graph(view: RolloutView, graph: DynamoGraphDeployment) -> RolloutView:
    """The rollout of a graph: between two components that restart one after another, the set has none."""
    if not view.complete:
        return view
    restart, status = graph.spec.restart, graph.status
    name = graph.metadata.name
    if status.observed_generation < graph.metadata.generation:
        message = f"the operator has not seen the latest change of DynamoGraphDeployment {name} yet"
        return replace(view, phase=RolloutPhase.NOT_OBSERVED, message=message)
    done = status.restart
    if restart is None or (done is not None and (done.observed_id, done.phase) == (restart.id, "Completed")):
        return view
    now = f": {', '.join(done.in_progress)}" if done is not None and done.in_progress else ""
    message = f"components of DynamoGraphDeployment {name} are being restarted{now}"
    return replace(view, phase=RolloutPhase.PROGRESSING, message=message)
