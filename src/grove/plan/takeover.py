"""Objects that upstream's operator made: taken over as they are, without touching a running pod.

Upstream's hashes cannot be computed here. What tells its objects from ours is a label of ours that they lack;
if such a clique has the pod spec that it should have, its pods are as new as they can be, and get our hash in
the place of theirs. Upstream's finalizers guard nothing, and nobody is left who would take them off.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.intents import Intent
from grove.api.marks import LEGACY_FINALIZERS
from grove.api.meta import ObjectMeta
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.plan import pods as state
from grove.plan.expand import Clique
from grove.plan.podspec import same_spec
from grove.plan.snapshot import Snapshot
from grove.plan.targets import Kinded, change, pod_patch


def same_by_upstream(workload: PodCliqueSet, clique: PodClique | None, wanted: Clique) -> str:
    """What upstream called the template that the pods of a clique should have; empty if the clique is ours or
    has another pod spec. Until pods have our hash in the place of theirs, they are as new as they can be."""
    if clique is None or not (theirs := _their_hash(clique)):
        return ""
    return theirs if same_spec(clique.spec.pod_spec, workload, wanted) else ""


def _their_hash(clique: PodClique) -> str:
    carried = clique.metadata.labels
    return "" if labels.CLIQUE_TEMPLATE in carried else carried.get(labels.TEMPLATE_HASH, "")


def relabelled(clique: PodClique, pods: Iterable[Pod], wanted: Clique) -> list[Intent]:
    """Our labels for the pods of a clique that has the pod spec it should have. The clique itself is to be
    relabelled after them: its old hash says which of them are new."""
    if not (theirs := _their_hash(clique)):
        return []
    ours = {labels.TEMPLATE_HASH: wanted.template_hash, labels.CLIQUE_TEMPLATE: wanted.template.name}
    return [
        pod_patch(pod, {"labels": ours})
        for pod in pods
        if pod.metadata.labels.get(labels.TEMPLATE_HASH) == theirs and not state.terminating(pod)
    ]


def without_legacy(finalizers: Iterable[str]) -> list[str]:
    return [name for name in finalizers if name not in LEGACY_FINALIZERS]


def unburdened(snapshot: Snapshot) -> list[Intent]:
    """Lets go of cliques and groups that are deleted and only wait for upstream to take its finalizer off."""
    parents: list[Kinded] = [*snapshot.cliques.values(), *snapshot.groups.values()]
    return [
        change(found, {"metadata": {"finalizers": without_legacy(found.metadata.finalizers)}})
        for found in parents
        if found.metadata.deletion_timestamp is not None and is_burdened(found.metadata)
    ]


def is_burdened(found: ObjectMeta) -> bool:
    return not LEGACY_FINALIZERS.isdisjoint(found.finalizers)
