"""Objects of ours that somebody relabelled out of our sight: met when we try to make them, and put back.

The caches select by labels and find the parts of a replica by labels. A part without them seems missing;
making it anew meets the old one, whose owner says that it is ours. It gets the labels back by which it is
found. All else that may be wrong with it is for the plan, which sees it from then on.

A pod is not made anew under its name. One that is out of sight without having been seen to terminate is
called by its name and UID before it is given up: if it is still there, it gets its labels back.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import Create, Patch
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.keys import Key, ReplicaKey
from grove.operator.observers.workload import Observer
from grove.plan.writes.builders import patch_pod_metadata

_SELECTOR_LABELS = (labels.MANAGED_BY, labels.PART_OF, labels.SET_REPLICA, labels.GROUP, labels.CLIQUE)


def restore_labels(pod: Pod) -> Patch:
    """Gives a pod that we have lost sight of the labels that we knew; there is no other pod that it fits."""
    known = {key: value for key in _SELECTOR_LABELS if (value := pod.metadata.labels.get(key)) is not None}
    return patch_pod_metadata(pod, {"labels": known})


def relabel_existing(outcome: Outcome) -> list[Patch]:
    """Patches for those that the plan did not know of because of their labels."""
    return [patch for result in outcome.results if (patch := _relabel(result)) is not None]


def _relabel(result: Result) -> Patch | None:
    intent = result.intent
    if result.state is not IntentState.FOUND or not isinstance(intent, Create):
        return None
    wanted, found = intent.body["metadata"]["labels"], result.existing.metadata
    missing = {key: wanted.get(key) for key in _SELECTOR_LABELS if found.labels.get(key) != wanted.get(key)}
    if not missing:
        return None
    metadata = {"uid": found.uid, "resourceVersion": found.resource_version, "labels": missing}
    return Patch(replace(intent.target, name=result.name), {"metadata": metadata})


async def find_lost(key: ReplicaKey, observer: Observer, writes: KeyedExecutor[Key]) -> bool:
    """Look for pods that went out of our sight and may still be there. False: it cannot be known yet."""
    lost = observer.lost_pods(key)
    if not lost:
        return True
    outcome = await writes.execute(key, [restore_labels(pod) for pod in lost])
    observer.resolve_lost_pods(key, outcome)
    return not observer.lost_pods(key)
