"""Plans a set as a whole: its finalizer, RBAC objects, shared claims, update progress, and its status as the
sum of its replicas. The objects of replicas are planned in `grove.plan.replica`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.event_reasons import EventReason
from grove.api.formats.name_list import name_list
from grove.api.intents import Intent
from grove.api.meta import Condition
from grove.api.naming import labels, well_known
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetStatus
from grove.plan import conditions
from grove.plan.desired.template_hash import generation_hash
from grove.plan.fabric.phase import phase_events
from grove.plan.fabric.status import failures, with_domains
from grove.plan.gang.scheduler_selection import unconfigured_message
from grove.plan.model import Plan, PlannedEvent, ReplicaReport, ReplicaSummary, StatusUpdate, UserError
from grove.plan.ownership.ownership import keep_owned_claims
from grove.plan.priority_class import missing_priority_class
from grove.plan.rbac import plan_rbac, token_secret_settled_at
from grove.plan.resource_claims import plan_set_claims
from grove.plan.rollout.progress import is_in_progress
from grove.plan.rollout.replica_order import next_update_progress
from grove.plan.rollout.set_update import update_condition, update_decision, update_events, with_counts
from grove.plan.snapshot import SetSnapshot
from grove.plan.status.set_waiting import early_reason, with_set_reason
from grove.plan.status.topology_events import topology_events
from grove.plan.timestamps import earliest, rfc3339
from grove.plan.writes.builders import patch_if_unchanged, reference, status_update
from grove.plan.writes.collector import WriteCollector
from grove.topology.availability import levels_unavailable
from grove.topology.enforcement import combined


def plan_set(snapshot: SetSnapshot, now: float) -> Plan:
    """Returns the plan for a set. Its status, except for errors, is published when every replica has
    reported."""
    workload, reports, too_many = snapshot.workload, snapshot.reports, snapshot.too_many
    if workload.metadata.deletion_timestamp is not None:
        return Plan()
    intents, user_errors = _set_writes(snapshot, now)
    token_due = token_secret_settled_at(workload, snapshot.access, now) if snapshot.access else None
    requeue_at = earliest(token_due, snapshot.priority.due)
    priority_errors = missing_priority_class(workload, now) if snapshot.priority.missing else ()
    wanted: Sequence[int] = range(workload.spec.replicas)
    harmless = (*priority_errors, *_broken_rule_errors(snapshot.invalid, now))
    events = tuple(_broken_rule_events(snapshot))
    if too_many is not None:
        user_errors = (*user_errors, too_many)
        events = (*events, *_pod_limit_events(workload, too_many))
        wanted = sorted(index for index in reports if index < workload.spec.replicas)
    elif not all(index in reports for index in wanted):
        return Plan(
            intents,
            _early_errors(workload, reports, (*snapshot.errors, *harmless), now),
            events=events,
            errors=user_errors,
            requeue_at=requeue_at,
        )
    summaries = [reports[index].summary for index in wanted]
    hash_ = generation_hash(workload)
    progress = next_update_progress(workload, hash_, summaries, now, wanted)
    errors = (*snapshot.errors, *failures(snapshot.domains))
    status = _status(workload, hash_, {index: reports[index] for index in wanted}, errors, harmless, now)
    status = replace(status, conditions=_conditions(snapshot, summaries, now))
    status = with_domains(status, workload, snapshot.domains, now, summaries)
    status = with_set_reason(status, workload, summaries, now)
    changes = (*topology_events(workload, status), *phase_events(workload, status, snapshot.domains))
    if progress == workload.status.update_progress:
        if all(summary.generation_hash == hash_ for summary in summaries):
            status = replace(status, current_generation_hash=hash_)
    elif well_known.SET_FINALIZER in workload.metadata.finalizers:
        decision = update_decision(workload, status, hash_, progress, summaries, now)
        by_index = {index: report.summary for index, report in reports.items()}
        intents = (*intents, decision)
        events = (*events, *update_events(workload, progress, by_index, decision.id))
        events = (*events, *(replace(event, intent=decision.id) for event in changes))
    # The generation is reported as soon as all replicas have observed it; the counts of an update are not.
    observed = status.observed_generation != workload.status.observed_generation
    updating = is_in_progress(progress) and not observed
    updates = (status_update(workload, status, events=changes, updating=updating),)
    return Plan(intents, updates, events, user_errors, requeue_at, partial=too_many is not None)


def _set_writes(snapshot: SetSnapshot, now: float) -> tuple[tuple[Intent, ...], tuple[UserError, ...]]:
    """Plans what a set has besides its replicas: the finalizer, RBAC for init containers, shared claims."""
    workload, access, shared = snapshot.workload, snapshot.access, snapshot.shared
    writes = WriteCollector()
    user_errors: tuple[UserError, ...] = ()
    if well_known.SET_FINALIZER not in workload.metadata.finalizers:
        finalizers = [*workload.metadata.finalizers, well_known.SET_FINALIZER]
        writes.add(patch_if_unchanged(workload, {"metadata": {"finalizers": finalizers}}))
    if access is not None:
        writes.add_all(plan_rbac(workload, access, now))
    if shared is not None:
        claims, user_errors = plan_set_claims(workload, keep_owned_claims(shared, workload.metadata.uid))
        writes.add_all(claims)
    return writes.intents(), user_errors


def _pod_limit_events(workload: PodCliqueSet, too_many: UserError) -> Iterator[PlannedEvent]:
    """The event of a set above the pod limit, unless its status reports it already."""
    if not too_many.reported_in(workload.status.last_errors):
        yield PlannedEvent(
            reference(workload), EventReason.POD_LIMIT_EXCEEDED, too_many.message, warning=True
        )


def _status(
    workload: PodCliqueSet,
    hash_: str,
    reports: Mapping[int, ReplicaReport],
    set_errors: tuple[LastError, ...],
    harmless: tuple[LastError, ...],
    now: float,
) -> PodCliqueSetStatus:
    """The status of a set. `harmless` errors leave nothing undone and do not keep `observedGeneration` back:
    of a rule of admission that is broken, of a PriorityClass that is missing, of a scheduler that is not
    configured any more."""
    before = workload.status
    current = not set_errors and all(
        report.generation >= workload.metadata.generation and not report.errors for report in reports.values()
    )
    summaries = [report.summary for report in reports.values()]
    of_replicas = chain.from_iterable(report.errors for report in reports.values())
    all_errors = chain(
        set_errors, harmless, of_replicas, _unconfigured_scheduler_errors(workload, reports, now)
    )
    return replace(
        before,
        observed_generation=workload.metadata.generation if current else before.observed_generation,
        last_errors=_last_errors(before, all_errors),
        replicas=workload.spec.replicas,
        available_replicas=sum(summary.available for summary in summaries),
        updated_replicas=sum(summary.updated for summary in summaries if summary.generation_hash == hash_),
        hpa_pod_selector=labels.selector(labels.pods_of_set(workload.metadata.name)),
        update_progress=before.update_progress and with_counts(before.update_progress, hash_, summaries),
    )


def _early_errors(
    workload: PodCliqueSet,
    reports: Mapping[int, ReplicaReport],
    set_errors: tuple[LastError, ...],
    now: float,
) -> tuple[StatusUpdate, ...]:
    """The errors that are known before every replica has reported: they may be why some have not."""
    of_replicas = chain.from_iterable(report.errors for report in reports.values())
    found = _last_errors(workload.status, chain(set_errors, of_replicas))
    status = early_reason(replace(workload.status, last_errors=found), workload, now)
    return (status_update(workload, status),) if found else ()


def _last_errors(before: PodCliqueSetStatus, all_errors: Iterable[LastError]) -> tuple[LastError, ...]:
    """At most 16 errors, without duplicates; a known error keeps its `observedAt`."""
    errors = {(error.code, error.description): error for error in all_errors}
    errors |= {
        key: error for error in before.last_errors if (key := (error.code, error.description)) in errors
    }
    return tuple(errors[key] for key in sorted(errors))[:16]


def _broken_rule_errors(message: str, now: float) -> Iterator[LastError]:
    """The error of a stored set that admission would refuse. It does not keep `observedGeneration` back: what
    can be done with the set is done."""
    if message:
        code = ErrorCode.VALIDATE_SET
        yield LastError(code, describe(Operation.SYNC, code, message), rfc3339(now))


def _broken_rule_events(snapshot: SetSnapshot) -> Iterator[PlannedEvent]:
    """The event of such a set, unless its status reports the error already."""
    workload, message = snapshot.workload, snapshot.invalid
    if message and not UserError(ErrorCode.VALIDATE_SET, message).reported_in(workload.status.last_errors):
        yield PlannedEvent(reference(workload), EventReason.SET_INVALID, message, warning=True)


def _unconfigured_scheduler_errors(
    workload: PodCliqueSet, reports: Mapping[int, ReplicaReport], now: float
) -> Iterator[LastError]:
    """Errors for replicas whose scheduler the configuration no longer lists."""
    by_scheduler: dict[str, list[str]] = {}
    for index, report in reports.items():
        if report.summary.unconfigured_scheduler:
            by_scheduler.setdefault(report.summary.unconfigured_scheduler, []).append(str(index))
    for scheduler, replicas in by_scheduler.items():
        which = f"replica{'s' if len(replicas) > 1 else ''} {name_list(replicas)}"
        message = f"{which}: {unconfigured_message(scheduler, workload)}"
        code = ErrorCode.SYNC_POD_GROUP
        yield LastError(code, describe(Operation.SYNC, code, message), rfc3339(now))


def _conditions(snapshot: SetSnapshot, summaries: list[ReplicaSummary], now: float) -> conditions.Conditions:
    workload = snapshot.workload
    known = conditions.merge_conditions(
        workload.status.conditions, (update_condition(workload.status.update_progress, summaries),), now
    )
    levels = levels_unavailable(workload, snapshot.topology, snapshot.fallback_topologies)
    of_topology: dict[str, Condition | None] = {
        ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE: levels,
        ConditionType.CONSTRAINTS_ENFORCED: combined(each.enforced for each in summaries if each.enforced),
    }
    for type_, new in of_topology.items():
        if new is None:
            known = conditions.without(known, type_)
        else:
            current = replace(new, observed_generation=workload.metadata.generation)
            known = conditions.merge_conditions(known, (current,), now)
    return known
