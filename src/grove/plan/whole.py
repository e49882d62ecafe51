"""The plan for a set as a whole: its finalizer, and its status rolled up from its replicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from grove.api import labels, marks
from grove.api.conditions import ConditionType
from grove.api.errors import Operation, describe
from grove.api.events import EventReason
from grove.api.intents import Intent, Status
from grove.api.meta import Condition
from grove.api.parts import LastError
from grove.api.sets import (
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueSetUpdateProgress,
    UpdateStrategyType,
)
from grove.plan import facts
from grove.plan.access import Access, grant, settles_at
from grove.plan.allegiance import unlisted
from grove.plan.claims import plan_whole_set
from grove.plan.domain_status import DomainNote, failures, with_domains
from grove.plan.hashes import generation_hash
from grove.plan.model import Complaint, Draft, News, Plan, Standing
from grove.plan.moments import rfc3339
from grove.plan.ours import keep_claims
from grove.plan.sharing import Shared
from grove.plan.targets import change, record, target
from grove.plan.telling import CANNOT_TELL
from grove.plan.turns import advance
from grove.plan.writes import Writes
from grove.topology.availability import levels_unavailable
from grove.topology.constraints import Topology

ON_DELETE = UpdateStrategyType.ON_DELETE


class Report(Struct, frozen=True, gc=False):
    """What the latest pass over a replica found: how it stands, and what went wrong."""

    generation: int
    """Of the set, if all was done that it asks for; 0 if something is left."""
    standing: Standing
    errors: tuple[LastError, ...] = ()


def plan_set(
    workload: PodCliqueSet,
    reports: Mapping[int, Report],
    now: float,
    access: Access | None = None,
    errors: tuple[LastError, ...] = (),
    topology: Topology | None = None,
    shared: Shared | None = None,
    domains: Sequence[DomainNote] = (),
    too_many: Complaint | None = None,
) -> Plan:
    """What to do about a set. Its status, errors apart, waits until every replica has reported. With
    `too_many` pods asked for it is held: then those replicas count that have reported. Without
    `access` nothing is granted, without `shared` no claims are made; `errors` are those of the pass before;
    `domains` are those that the set is in."""
    if workload.metadata.deletion_timestamp is not None:
        return Plan()
    intents, complaints = _provisions(workload, access, shared, now)
    wake_at = settles_at(workload, access, now) if access is not None else None
    wanted: Sequence[int] = range(workload.spec.replicas)
    if too_many is not None:
        complaints = (*complaints, too_many)
        wanted = sorted(index for index in reports if index < workload.spec.replicas)
    elif not all(index in reports for index in wanted):
        return Plan(intents, _early(workload, reports, errors), wake_at, complaints=complaints)
    standings = [reports[index].standing for index in wanted]
    hash_ = generation_hash(workload)
    progress = advance(workload, hash_, standings, now, wanted)
    errors = (*errors, *failures(domains))
    status = _status(workload, {index: reports[index] for index in wanted}, errors, now)
    status = replace(status, conditions=_conditions(workload, topology, standings, now))
    news: tuple[News, ...] = ()
    if progress == workload.status.update_progress:
        if all(standing.generation_hash == hash_ for standing in standings):
            status = replace(status, current_generation_hash=hash_)
    elif marks.SET_FINALIZER in workload.metadata.finalizers:
        decision = _decision(workload, hash_, progress)
        intents, news = (*intents, decision), tuple(_story(workload, progress, reports, decision.id))
    status = with_domains(status, workload, domains, now)
    draft = Draft(target(workload), workload.status, status, version=workload.metadata.resource_version)
    return Plan(intents, (draft,), wake_at, complaints=complaints, news=news, partial=too_many is not None)


def _decision(workload: PodCliqueSet, hash_: str, progress: PodCliqueSetUpdateProgress | None) -> Status:
    """That an update begins, moves on or ends. Replicas act on it: it is written at once, by whoever knows
    the latest, and is not told before."""
    return record(workload, replace(workload.status, current_generation_hash=hash_, update_progress=progress))


def _provisions(
    workload: PodCliqueSet, access: Access | None, shared: Shared | None, now: float
) -> tuple[tuple[Intent, ...], tuple[Complaint, ...]]:
    """What a set has besides its replicas: our finalizer, grants for init containers, shared claims."""
    writes = Writes()
    complaints: tuple[Complaint, ...] = ()
    if marks.SET_FINALIZER not in workload.metadata.finalizers:
        finalizers = [*workload.metadata.finalizers, marks.SET_FINALIZER]
        writes.add(change(workload, {"metadata": {"finalizers": finalizers}}))
    if access is not None:
        writes.add_all(grant(workload, access, now))
    if shared is not None:
        claims, complaints = plan_whole_set(workload, keep_claims(shared, workload.metadata.uid))
        writes.add_all(claims)
    return writes.intents(), complaints


def _story(
    workload: PodCliqueSet,
    progress: PodCliqueSetUpdateProgress | None,
    reports: Mapping[int, Report],
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
            done = index in reports and reports[index].standing.rolled
            if done and entry not in progress.currently_updating:
                yield News(intent, EventReason.REPLICA_UPDATED, f"Replica {index} is updated")
    if progress.update_ended_at is not None and workload.spec.update_strategy.type is not ON_DELETE:
        yield News(intent, EventReason.UPDATE_FINISHED, f"All {workload.spec.replicas} replicas are updated")


def _status(
    workload: PodCliqueSet,
    reports: Mapping[int, Report],
    own: tuple[LastError, ...],
    now: float,
) -> PodCliqueSetStatus:
    before = workload.status
    current = not own and all(
        report.generation >= workload.metadata.generation and not report.errors for report in reports.values()
    )
    standings = [report.standing for report in reports.values()]
    of_replicas = chain.from_iterable(report.errors for report in reports.values())
    told = chain(own, of_replicas, _neglected(workload, reports, now))
    return replace(
        before,
        observed_generation=workload.metadata.generation if current else before.observed_generation,
        last_errors=_last_errors(before, told),
        replicas=workload.spec.replicas,
        available_replicas=sum(standing.available for standing in standings),
        updated_replicas=sum(standing.updated for standing in standings),
        hpa_pod_selector=labels.selector(labels.pods_of_set(workload.metadata.name)),
        update_progress=before.update_progress and _counted(before.update_progress, standings),
    )


def _early(
    workload: PodCliqueSet, reports: Mapping[int, Report], own: tuple[LastError, ...]
) -> tuple[Draft, ...]:
    """The errors that are known before every replica has reported: they may be why some have not."""
    of_replicas = chain.from_iterable(report.errors for report in reports.values())
    found = _last_errors(workload.status, chain(own, of_replicas))
    if not found:
        return ()
    status = replace(workload.status, last_errors=found)
    return (Draft(target(workload), workload.status, status, version=workload.metadata.resource_version),)


def _last_errors(before: PodCliqueSetStatus, told: Iterable[LastError]) -> tuple[LastError, ...]:
    """At most 16 errors, each once; one that is known already keeps its date."""
    errors = {(error.code, error.description): error for error in told}
    errors |= {
        key: error for error in before.last_errors if (key := (error.code, error.description)) in errors
    }
    return tuple(errors[key] for key in sorted(errors))[:16]


def _neglected(workload: PodCliqueSet, reports: Mapping[int, Report], now: float) -> Iterator[LastError]:
    """Replicas whose scheduler the configuration has forgotten. It holds up nothing that the set asks for."""
    by_scheduler: dict[str, list[str]] = {}
    for index, report in reports.items():
        if report.standing.unlisted:
            by_scheduler.setdefault(report.standing.unlisted, []).append(str(index))
    for scheduler, replicas in by_scheduler.items():
        rest = f" and {len(replicas) - 3} more" if len(replicas) > 3 else ""
        which = f"replica{'s' if len(replicas) > 1 else ''} {', '.join(replicas[:3])}{rest}"
        words = f"{which}: {unlisted(scheduler, workload)}"
        yield LastError(CANNOT_TELL, describe(Operation.SYNC, CANNOT_TELL, words), rfc3339(now))


def _conditions(
    workload: PodCliqueSet, topology: Topology | None, standings: list[Standing], now: float
) -> facts.Facts:
    known = facts.settle(workload.status.conditions, (_update_in_progress(workload, standings),), now)
    levels = levels_unavailable(workload, topology)
    if levels is None:
        return facts.without(known, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)
    return facts.settle(known, (levels,), now)


def _update_in_progress(workload: PodCliqueSet, standings: list[Standing]) -> Condition:
    progress = workload.status.update_progress
    rolling = sum(standing.rolling for standing in standings)
    stuck = sum(standing.stuck for standing in standings)
    overdue = f"{stuck} of {rolling} cliques and groups that are being replaced come no further"
    under_way = rolling > 0 or (progress is not None and progress.update_ended_at is None)
    return facts.update_in_progress(under_way, overdue if stuck else "")


def _counted(progress: PodCliqueSetUpdateProgress, standings: list[Standing]) -> PodCliqueSetUpdateProgress:
    over = progress.update_ended_at is not None
    return replace(
        progress,
        currently_updating=() if over else progress.currently_updating,
        updated_pod_cliques_count=sum(standing.updated_cliques for standing in standings),
        total_pod_cliques_count=sum(standing.cliques for standing in standings),
        updated_pod_clique_scaling_groups_count=sum(standing.updated_groups for standing in standings),
        total_pod_clique_scaling_groups_count=sum(standing.groups for standing in standings),
    )
