"""The plan for a set as a whole: its finalizer, its status rolled up from its replicas, and its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels, marks
from grove.api.cliques import PodClique
from grove.api.events import EventReason
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Delete, DeleteCollection, Intent, Status
from grove.api.parts import LastError
from grove.api.pods import Pod
from grove.api.sets import (
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueSetUpdateProgress,
    UpdateStrategyType,
)
from grove.plan import pods as state
from grove.plan.hashes import generation_hash
from grove.plan.model import Draft, News, Plan, Standing
from grove.plan.targets import change, foreign_target, record, target
from grove.plan.turns import advance

ON_DELETE = UpdateStrategyType.ON_DELETE
ORPHAN = "orphan"  # the garbage collector's finalizer of `--cascade=orphan`


class Report(Struct, frozen=True, gc=False):
    """What the latest pass over a replica found: how it stands at which generation, and what went wrong."""

    generation: int
    standing: Standing
    errors: tuple[LastError, ...] = ()


def plan_set(workload: PodCliqueSet, reports: Mapping[int, Report], now: float) -> Plan:
    """What to do about a set. Its status waits until every replica has reported."""
    if workload.metadata.deletion_timestamp is not None:
        return Plan()
    intents: tuple[Intent, ...] = ()
    if marks.SET_FINALIZER not in workload.metadata.finalizers:
        finalizers = [*workload.metadata.finalizers, marks.SET_FINALIZER]
        intents = (change(workload, {"metadata": {"finalizers": finalizers}}),)
    wanted = range(workload.spec.replicas)
    if not all(index in reports for index in wanted):
        return Plan(intents)
    news: tuple[News, ...] = ()
    standings = [reports[index].standing for index in wanted]
    hash_ = generation_hash(workload)
    progress = advance(workload, hash_, standings, now)
    if not intents and _decides(workload.status, progress):
        # Replicas act on it: it is written at once, and by whoever knows the latest.
        decided = replace(workload.status, current_generation_hash=hash_, update_progress=progress)
        intents = (record(workload, decided),)
        news = tuple(_story(workload, progress, standings, intents[0].id))
    status = _status(workload, [reports[index] for index in wanted], hash_, progress)
    return Plan(intents, (Draft(target(workload), workload.status, status),), news=news)


def _story(
    workload: PodCliqueSet,
    progress: PodCliqueSetUpdateProgress | None,
    standings: list[Standing],
    intent: str,
) -> Iterator[News]:
    """What there is to tell of an update that moves on."""
    before = workload.status.update_progress
    if progress is None:
        return
    if before is None or before.update_started_at != progress.update_started_at:
        yield News(intent, EventReason.UPDATE_STARTED, "The template has changed: its update has begun")
    else:
        for entry in before.currently_updating:
            index = entry.replica_index
            if (
                entry not in progress.currently_updating
                and index < len(standings)
                and standings[index].rolled
            ):
                yield News(intent, EventReason.REPLICA_UPDATED, f"Replica {index} is updated")
    if progress.update_ended_at is not None and workload.spec.update_strategy.type is not ON_DELETE:
        yield News(intent, EventReason.UPDATE_FINISHED, f"All {len(standings)} replicas are updated")


def _decides(before: PodCliqueSetStatus, progress: PodCliqueSetUpdateProgress | None) -> bool:
    """Whether an update begins, moves on or ends: all that its progress says, but for the counts."""
    return before.current_generation_hash != "" and before.update_progress != progress


def plan_end(workload: PodCliqueSet, pods: tuple[Pod, ...], cliques: tuple[PodClique, ...]) -> Plan:
    """The end of a set: its pods first and by us, for the garbage collector is slow; then it may go.

    With `--cascade=orphan` everything stays. Pods that only look like ours are spared. What is deleted by its
    labels may by now be another's: that it is still this set that ends is confirmed first, or whoever learns
    late that a set has gone would take down its successor of the same name.
    """
    finalizers = workload.metadata.finalizers
    if marks.SET_FINALIZER not in finalizers:
        return Plan()
    rest = [name for name in finalizers if name != marks.SET_FINALIZER]
    release = change(workload, {"metadata": {"finalizers": rest}})
    if ORPHAN in finalizers:
        return Plan((release,))
    fence = Status(target(workload), {"metadata": {"resourceVersion": workload.metadata.resource_version}})
    deletions = [
        replace(deletion, after=(*deletion.after, fence.id))
        for deletion in _deletions(workload, pods, {clique.metadata.uid for clique in cliques})
    ]
    release = replace(release, after=tuple(deletion.id for deletion in deletions))
    return Plan((fence, *deletions, release))


def _deletions(workload: PodCliqueSet, pods: tuple[Pod, ...], cliques: set[str]) -> list[Intent]:
    meta = workload.metadata
    selector = labels.selector(labels.managed(meta.name))
    ours = [pod for pod in pods if state.controller_uid(pod.metadata) in cliques]
    deletions: list[Intent] = []
    if len(ours) == len(pods):
        deletions.append(DeleteCollection("v1", "Pod", meta.namespace, selector))
    else:
        deletions += [Delete(foreign_target("v1", "Pod", pod), uid=pod.metadata.uid) for pod in ours]
    # Pods hold GPUs, the rest holds nothing, and deleting it makes the garbage collector compete with us.
    after = tuple(deletion.id for deletion in deletions)
    for kind in (PodClique.KIND, PodCliqueScalingGroup.KIND, PodGang.KIND):
        deletions.append(DeleteCollection(kind.api_version, kind.name, meta.namespace, selector, after=after))
    return deletions


def _status(
    workload: PodCliqueSet, reports: list[Report], hash_: str, progress: PodCliqueSetUpdateProgress | None
) -> PodCliqueSetStatus:
    before = workload.status
    current = all(
        report.generation >= workload.metadata.generation and not report.errors for report in reports
    )
    standings = [report.standing for report in reports]
    errors = {(error.code, error.description): error for report in reports for error in report.errors}
    return replace(
        before,
        observed_generation=workload.metadata.generation if current else before.observed_generation,
        last_errors=tuple(errors[key] for key in sorted(errors))[:16],
        replicas=workload.spec.replicas,
        available_replicas=sum(standing.available for standing in standings),
        updated_replicas=sum(standing.updated for standing in standings),
        hpa_pod_selector=labels.selector(labels.pods_of_set(workload.metadata.name)),
        current_generation_hash=hash_,
        update_progress=progress and _counted(progress, standings),
    )


def _counted(progress: PodCliqueSetUpdateProgress, standings: list[Standing]) -> PodCliqueSetUpdateProgress:
    return replace(
        progress,
        updated_pod_cliques_count=sum(standing.updated_cliques for standing in standings),
        total_pod_cliques_count=sum(standing.cliques for standing in standings),
        updated_pod_clique_scaling_groups_count=sum(standing.updated_groups for standing in standings),
        total_pod_clique_scaling_groups_count=sum(standing.groups for standing in standings),
    )
