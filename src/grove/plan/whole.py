"""The plan for a set as a whole: its finalizer, and its status rolled up from its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels, marks
from grove.api.conditions import ConditionType
from grove.api.parts import LastError
from grove.api.sets import PodCliqueSet, PodCliqueSetStatus, PodCliqueSetUpdateProgress
from grove.plan import facts
from grove.plan.access import Access, grant, settles_at
from grove.plan.hashes import generation_hash
from grove.plan.model import Draft, Plan, Standing
from grove.plan.moments import rfc3339
from grove.plan.targets import change, target
from grove.topology.availability import levels_unavailable
from grove.topology.constraints import Topology


class Report(Struct, frozen=True, gc=False):
    """What the latest pass over a replica found: how it stands at which generation, and what went wrong."""

    generation: int
    standing: Standing
    errors: tuple[LastError, ...] = ()


def plan_set(
    workload: PodCliqueSet,
    reports: Mapping[int, Report],
    now: float,
    access: Access | None = None,
    errors: tuple[LastError, ...] = (),
    topology: Topology | None = None,
) -> Plan:
    """What to do about a set. Its status waits until every replica has reported. Without `access` nothing is
    granted; `errors` are those of the pass before."""
    if workload.metadata.deletion_timestamp is not None:
        return Plan()
    intents = grant(workload, access, now) if access is not None else ()
    wake_at = settles_at(workload, access, now) if access is not None else None
    if marks.SET_FINALIZER not in workload.metadata.finalizers:
        finalizers = [*workload.metadata.finalizers, marks.SET_FINALIZER]
        intents = (change(workload, {"metadata": {"finalizers": finalizers}}), *intents)
    wanted = range(workload.spec.replicas)
    if not all(index in reports for index in wanted):
        return Plan(intents, wake_at=wake_at)
    status = _status(workload, [reports[index] for index in wanted], errors, now)
    status = replace(status, conditions=_conditions(workload, topology, now))
    draft = Draft(target(workload), workload.status, status)
    return Plan(intents, (draft,), wake_at)


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


def _conditions(workload: PodCliqueSet, topology: Topology | None, now: float) -> facts.Facts:
    levels, known = levels_unavailable(workload, topology), workload.status.conditions
    if levels is None:
        return facts.without(known, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)
    return facts.settle(known, (levels,), now)


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
