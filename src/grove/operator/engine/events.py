"""Kubernetes Events of a pass: one for each change, on the object that its users look at.

The first creation of a replica emits none, its status shows it better. Later changes do: pods that are
created and deleted, objects that are deleted by a scale-in, and writes that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from grove import timing
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, DeferredValue, Delete, EventRecord, Intent, ObjectRef, Status
from grove.api.naming import labels
from grove.api.types.podclique import PodClique, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.cache.cache import Cache, HasMetadata
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.plan.model import Plan, StatusUpdate

_CREATE_FAILED = {
    "Pod": EventReason.POD_CREATE_FAILED,
    PodClique.KIND.name: EventReason.CLIQUE_WRITE_FAILED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_WRITE_FAILED,
    PodGang.KIND.name: EventReason.GANG_WRITE_FAILED,
}
_DELETED = {
    "Pod": EventReason.POD_DELETED,
    PodClique.KIND.name: EventReason.CLIQUE_DELETED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_DELETED,
    PodGang.KIND.name: EventReason.GANG_DELETED,
}
_DELETE_FAILED = {
    "Pod": EventReason.POD_DELETE_FAILED,
    PodClique.KIND.name: EventReason.CLIQUE_DELETE_FAILED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_DELETE_FAILED,
    PodGang.KIND.name: EventReason.GANG_DELETE_FAILED,
}


_CHILD_KINDS = (PodClique.KIND.name, PodCliqueScalingGroup.KIND.name)


class DeletedPod(NamedTuple):
    """A pod that is to be deleted, with its clique."""

    clique: PodClique
    slot: tuple[str, str]
    """The clique's name, and the pod's index in it."""
    pod: str


DeletedPods = Mapping[str, DeletedPod]
"""By the id of the delete intent."""


def deleted_pods(caches: Caches, intents: Iterable[Intent]) -> DeletedPods:
    """The pods that a plan deletes, with their cliques. Read before the deletes are sent: the cache drops a
    pod without a node with the reply."""
    found: dict[str, DeletedPod] = {}
    for intent in intents:
        if isinstance(intent, Delete) and intent.target.kind == "Pod":
            pod = caches.pods.get(intent.target.namespace, intent.target.name)
            pod_labels = pod.metadata.labels if pod else {}
            clique = caches.cliques.get(intent.target.namespace, pod_labels.get(labels.CLIQUE, ""))
            if clique is not None:
                found[intent.id] = DeletedPod(clique, _slot_of(pod_labels), intent.target.name)
    return found


def _slot_of(pod_labels: Mapping[str, str]) -> tuple[str, str]:
    return pod_labels.get(labels.CLIQUE, ""), pod_labels.get(labels.POD_INDEX, "")


def events_of_outcome(
    caches: Caches, workload: PodCliqueSet, outcome: Outcome, deleted_pods: DeletedPods
) -> Iterator[EventRecord]:
    """The events of an outcome. Objects that are deleted with their set, replica or gang emit none: an event
    for each pod is an API call for each pod, while other workloads wait for the GPUs. Replicas that are
    deleted together by one scale-in are one event, too."""
    deleting = workload.metadata.deletion_timestamp is not None
    done = [result for result in outcome.results if result.state is IntentState.DONE]
    if not deleting and (gone := [result for result in done if _is_scaled_in_gang(workload, result.intent)]):
        yield _event(caches, workload, gone[0], (EventReason.GANG_DELETED, _deletion_note(gone)), {})
    gangs = {
        result.intent.target.name
        for result in outcome.results
        if isinstance(result.intent, Delete) and result.intent.target.kind == PodGang.KIND.name
    }
    replaced = _replacements(done, deleted_pods)
    for result in outcome.results:
        found = _reason_and_note(result, replaced)
        with_parent = _is_deleted_with_parent(result, gangs, deleting)
        scaled_in = with_parent or _is_scaled_in_object(workload, result.intent)
        if found is None or (scaled_in and result.state is IntentState.DONE):
            continue
        yield _event(caches, workload, result, found, deleted_pods)


def _event(
    caches: Caches,
    workload: PodCliqueSet,
    result: Result,
    found: tuple[EventReason, str],
    deleted_pods: DeletedPods,
) -> EventRecord:
    reason, note = found
    deleted_pod = deleted_pods.get(result.intent.id)
    about = deleted_pod.clique if deleted_pod else _clique_of_new_pod(caches, result.intent)
    regarding = _reference(PodCliqueSet.KIND.api_version, PodCliqueSet.KIND.name, workload)
    if about is not None:
        regarding = _reference(PodClique.KIND.api_version, PodClique.KIND.name, about)
    return EventRecord(
        regarding,
        reason.value,
        note,
        action="Sync",
        warning=result.state is IntentState.FAILED,
        reporter=(EventReporter.SET if about is None else EventReporter.CLIQUE).value,
    )


def _replacements(done: Iterable[Result], deleted_pods: DeletedPods) -> dict[str, str]:
    """Pods that were deleted and created again in the same pass, which is one event: by the id of both
    writes, the name of the deleted pod."""
    gone = {deleted_pod.slot: (id_, deleted_pod.pod) for id_, deleted_pod in deleted_pods.items()}
    deleted = {result.intent.id for result in done}
    pairs: dict[str, str] = {}
    for result in done:
        if isinstance(result.intent, Create) and result.intent.target.kind == "Pod":
            id_, pod = gone.get(_slot_of(result.intent.body["metadata"]["labels"]), ("", ""))
            if id_ in deleted:
                pairs |= {id_: pod, result.intent.id: pod}
    return pairs


def events_of_plan(plan: Plan, outcome: Outcome) -> Iterator[EventRecord]:
    """The events in the plan whose writes were done: of two leaders, only one succeeds with a write."""
    done = {result.intent.id for result in outcome.results if result.state is IntentState.DONE}
    for event in plan.events:
        if event.intent in done:
            yield EventRecord(
                event.regarding,
                event.reason,
                event.note,
                action="Sync",
                warning=event.warning,
                reporter=event.reporter,
            )


def lost_scheduling_events(
    caches: Caches, status_updates: Iterable[StatusUpdate], outcome: Outcome
) -> Iterator[EventRecord]:
    """Events for cliques and groups none of whose replicas is scheduled any more, if their status was
    written: a status is written on the resourceVersion that was read, so only one leader emits the event. No
    event is emitted with `spec.replicas` 0, during a rollout, and for a gang termination, which has its own
    event."""
    written = [result.intent for result in outcome.results if result.state is IntentState.DONE]
    done = {intent.target for intent in written if isinstance(intent, Status)}
    for status_update in status_updates:
        target = status_update.target
        if target not in done or target.kind not in _CHILD_KINDS or status_update.restart_pending:
            continue
        before, after = status_update.current.scheduled_replicas, status_update.desired.scheduled_replicas
        of_group = target.kind == PodCliqueScalingGroup.KIND.name
        cache: Cache[PodClique] | Cache[PodCliqueScalingGroup] = caches.groups if of_group else caches.cliques
        found = cache.get(target.namespace, target.name)
        if not before or after or found is None or not found.spec.replicas:
            continue
        group = caches.groups.get(target.namespace, found.metadata.labels.get(labels.GROUP, ""))
        updating = _updating(status_update.desired) or (group is not None and _updating(group.status))
        if found.metadata.deletion_timestamp is None and not updating:
            yield EventRecord(
                _reference(target.api_version, target.kind, found),
                EventReason.ALL_SCHEDULED_LOST.value,
                f"None of {found.spec.replicas} replicas is scheduled any more; {before} were before",
                action="Sync",
                warning=True,
                reporter=(EventReporter.GROUP if of_group else EventReporter.CLIQUE).value,
            )


def _updating(status: PodCliqueStatus | PodCliqueScalingGroupStatus) -> bool:
    """Whether a rollout is in progress. The cliques of a group are rolled out by their group."""
    progress = status.update_progress
    return progress is not None and progress.update_ended_at is None


def _is_scaled_in_gang(workload: PodCliqueSet, intent: Intent) -> bool:
    """Whether an intent deletes the base gang of a replica above `spec.replicas`."""
    if not isinstance(intent, Delete) or intent.target.kind != PodGang.KIND.name:
        return False
    index = intent.target.name.removeprefix(f"{workload.metadata.name}-")
    return index.isdecimal() and int(index) >= workload.spec.replicas


def _is_scaled_in_object(workload: PodCliqueSet, intent: Intent) -> bool:
    """Whether an intent deletes an object of a replica above `spec.replicas`."""
    if not isinstance(intent, Delete):
        return False
    index = intent.target.name.removeprefix(f"{workload.metadata.name}-").partition("-")[0]
    return index.isdecimal() and int(index) >= workload.spec.replicas


def _deletion_note(gone: Sequence[Result]) -> str:
    names = [result.intent.target.name for result in gone if isinstance(result.intent, Delete)]
    if len(names) == 1:
        return f"Deleted PodGang {names[0]}"
    rest = ", ..." if len(names) > timing.DELETED_GANGS_NAMED else ""
    return f"Deleted {len(names)} PodGangs: {', '.join(names[: timing.DELETED_GANGS_NAMED])}{rest}"


def _is_deleted_with_parent(result: Result, gangs: set[str], deleting: bool) -> bool:
    """Whether an object was deleted with its set, or with the base gang that its name begins with."""
    if not isinstance(result.intent, Delete):
        return False
    segments = result.intent.target.name.split("-")
    return deleting or any("-".join(segments[:count]) in gangs for count in range(1, len(segments)))


def _reason_and_note(result: Result, replaced: Mapping[str, str]) -> tuple[EventReason, str] | None:
    intent = result.intent
    former = replaced.get(intent.id, "")
    if isinstance(intent, Create):
        kind = intent.target.kind
        if result.state is IntentState.FAILED and kind in _CREATE_FAILED:
            return _CREATE_FAILED[kind], f"Could not create {kind}: {result.error}"
        if (
            result.state is IntentState.DONE
            and kind == "Pod"
            and not isinstance(_owner_uid(intent), DeferredValue)
        ):
            return EventReason.POD_CREATED, f"Created pod {result.name}" + (
                f" in place of {former}" if former else ""
            )
    if isinstance(intent, Delete) and intent.target.kind in _DELETED:
        kind, name = intent.target.kind, intent.target.name
        if result.state is IntentState.FAILED:
            return _DELETE_FAILED[kind], f"Could not delete {kind} {name}: {result.error}"
        if result.state is IntentState.DONE and not former:
            return _DELETED[kind], f"Deleted {'pod' if kind == 'Pod' else kind} {name}"
    return None


def _owner_uid(intent: Create) -> str:
    uid: str = intent.body["metadata"]["ownerReferences"][0]["uid"]
    return uid


def _clique_of_new_pod(caches: Caches, intent: Intent) -> PodClique | None:
    """The clique that a pod is created for: users look for events there."""
    if isinstance(intent, Create) and intent.target.kind == "Pod":
        name = intent.body["metadata"]["labels"][labels.CLIQUE]
        return caches.cliques.get(intent.target.namespace, name)
    return None


def _reference(api_version: str, kind: str, found: HasMetadata) -> ObjectRef:
    meta = found.metadata
    return ObjectRef(api_version, kind, meta.name, meta.namespace, meta.uid)
