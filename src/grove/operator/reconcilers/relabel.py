"""Restores the labels of our objects when others removed or changed them.

The caches select by labels and index the objects of a replica by labels, so an object without them seems
missing. The create that follows fails with AlreadyExists; if the owner reference of the existing object shows
that it is ours, it gets its labels back. Everything else that is wrong with it is repaired by the next plan,
which sees it.

A pod is not created again under its name. A pod that left the cache without having terminated is patched by
its name and UID before it is considered deleted: if it still exists, it gets its labels back.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import Create, Delete, Patch
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.keys import Key, ReplicaKey
from grove.operator.observers.workload import Observer
from grove.plan.writes.builders import patch_pod_metadata

_SELECTOR_LABELS = (labels.MANAGED_BY, labels.PART_OF, labels.SET_REPLICA, labels.GROUP, labels.CLIQUE)


def restore_labels(pod: Pod) -> Patch:
    """Restore the last known labels of a lost pod. The patch carries the UID, so it fits no other pod."""
    known = {key: value for key in _SELECTOR_LABELS if (value := pod.metadata.labels.get(key)) is not None}
    return patch_pod_metadata(pod, {"labels": known})


def relabel_existing(outcome: Outcome) -> list[Patch | Delete]:
    """Writes for existing objects that the plan tried to create because they lack their labels. Roles and
    RoleBindings are deleted and created again: the operator has no right to patch them."""
    return [write for result in outcome.results if (write := _relabel(result)) is not None]


def _relabel(result: Result) -> Patch | Delete | None:
    intent = result.intent
    if result.state is not IntentState.FOUND or not isinstance(intent, Create):
        return None
    desired, found = intent.body["metadata"]["labels"], result.existing.metadata
    missing = {key: desired.get(key) for key in _SELECTOR_LABELS if found.labels.get(key) != desired.get(key)}
    if not missing:
        return None
    target = replace(intent.target, name=result.name)
    if target.kind in ("Role", "RoleBinding"):
        return Delete(target, uid=found.uid)
    metadata = {"uid": found.uid, "resourceVersion": found.resource_version, "labels": missing}
    return Patch(target, {"metadata": metadata})


async def find_lost(key: ReplicaKey, observer: Observer, writes: KeyedExecutor[Key]) -> Outcome | None:
    """Patch lost pods, which may still exist. Returns the outcome if it is not known yet whether they do."""
    lost = observer.lost_pods(key)
    if not lost:
        return None
    outcome = await writes.execute(key, [restore_labels(pod) for pod in lost])
    observer.resolve_lost_pods(key, outcome)
    return outcome if observer.lost_pods(key) else None
