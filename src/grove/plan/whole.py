"""The plan for a set as a whole: its finalizer, its status rolled up from its replicas, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels, marks
from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Delete, DeleteCollection, Intent, Status
from grove.api.parts import LastError
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet, PodCliqueSetStatus, PodCliqueSetUpdateProgress
from grove.plan import pods as state
from grove.plan.access import Access, grant, settles_at, withdraw
from grove.plan.hashes import generation_hash
from grove.plan.model import Draft, Plan, Standing
from grove.plan.moments import rfc3339
from grove.plan.targets import change, foreign_target, target

_NO_ACCESS = Access()
ORPHAN = "orphan"  # the garbage collector's finalizer of `--cascade=orphan`


class Report(Struct, frozen=True, gc=False):
    """What the latest pass over a replica found: how it stands at which generation, and what went wrong."""

    generation: int
    standing: Standing
    errors: tuple[LastError, ...] = ()


def plan_set(
    workload: PodCliqueSet,
    reports: Mapping[int, Report],
    now: float,
    access: Access = _NO_ACCESS,
    errors: tuple[LastError, ...] = (),
) -> Plan:
    """What to do about a set. Its status waits until every replica has reported. `errors` are those of the
    pass before."""
    if workload.metadata.deletion_timestamp is not None:
        return Plan()
    intents = grant(workload, access, now)
    if marks.SET_FINALIZER not in workload.metadata.finalizers:
        finalizers = [*workload.metadata.finalizers, marks.SET_FINALIZER]
        intents = (change(workload, {"metadata": {"finalizers": finalizers}}), *intents)
    wanted = range(workload.spec.replicas)
    if not all(index in reports for index in wanted):
        return Plan(intents, wake_at=settles_at(workload, access, now))
    status = _status(workload, [reports[index] for index in wanted], errors, now)
    draft = Draft(target(workload), workload.status, status)
    return Plan(intents, (draft,), settles_at(workload, access, now))


def plan_end(
    workload: PodCliqueSet,
    pods: tuple[Pod, ...],
    cliques: tuple[PodClique, ...],
    access: Access = _NO_ACCESS,
) -> Plan:
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
    of_pods = _deletions(workload, pods, {clique.metadata.uid for clique in cliques})
    deletions = [
        replace(deletion, after=(*deletion.after, fence.id))
        for deletion in (*of_pods, *withdraw(workload, access))
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
    workload: PodCliqueSet, reports: list[Report], own: tuple[LastError, ...], now: float
) -> PodCliqueSetStatus:
    before, hash_ = workload.status, generation_hash(workload)
    current = not own and all(
        report.generation >= workload.metadata.generation and not report.errors for report in reports
    )
    standings = [report.standing for report in reports]
    told = chain(own, *(report.errors for report in reports))
    errors = {(error.code, error.description): error for error in told}
    return replace(
        before,
        observed_generation=workload.metadata.generation if current else before.observed_generation,
        last_errors=tuple(errors[key] for key in sorted(errors))[:16],
        replicas=workload.spec.replicas,
        available_replicas=sum(standing.available for standing in standings),
        updated_replicas=sum(standing.updated for standing in standings),
        hpa_pod_selector=labels.selector(labels.pods_of_set(workload.metadata.name)),
        current_generation_hash=hash_,
        update_progress=_progress(before, hash_, standings, now),
    )


def _progress(
    before: PodCliqueSetStatus, hash_: str, standings: list[Standing], now: float
) -> PodCliqueSetUpdateProgress | None:
    """A changed template opens an update. Nobody is rolled yet, so it ends at once, as with OnDelete."""
    progress = before.update_progress
    if before.current_generation_hash and before.current_generation_hash != hash_:
        progress = PodCliqueSetUpdateProgress(update_started_at=rfc3339(now), update_ended_at=rfc3339(now))
    if progress is None:
        return None
    return replace(
        progress,
        updated_pod_cliques_count=sum(standing.updated_cliques for standing in standings),
        total_pod_cliques_count=sum(standing.cliques for standing in standings),
        updated_pod_clique_scaling_groups_count=sum(standing.updated_groups for standing in standings),
        total_pod_clique_scaling_groups_count=sum(standing.groups for standing in standings),
    )
