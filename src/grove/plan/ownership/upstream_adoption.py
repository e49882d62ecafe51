"""Takes over objects that upstream's operator created, without a change to running pods.

Upstream's hashes cannot be computed here. Its objects lack one of our labels; if such a clique has the
desired pod spec, its pods are up to date, and our hash replaces theirs. Upstream's finalizers protect
nothing, and no controller is left to remove them.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.intents import Intent
from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.naming.well_known import LEGACY_FINALIZERS
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import Clique
from grove.plan.desired.podspec import same_spec
from grove.plan.members import pod_state
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import GroveObject, patch_if_unchanged, patch_pod_metadata


def upstream_template_hash(workload: PodCliqueSet, clique: PodClique | None, wanted: Clique) -> str:
    """Upstream's hash of the template that the pods of a clique should have; empty if the clique is ours or
    has another pod spec. Pods with this hash are up to date until they get ours."""
    if clique is None or not (upstream_hash := _upstream_hash(clique)):
        return ""
    return upstream_hash if same_spec(clique.spec.pod_spec, workload, wanted) else ""


def _upstream_hash(clique: PodClique) -> str:
    object_labels = clique.metadata.labels
    return "" if labels.CLIQUE_TEMPLATE in object_labels else object_labels.get(labels.TEMPLATE_HASH, "")


def relabel_pods(clique: PodClique, pods: Iterable[Pod], wanted: Clique) -> list[Intent]:
    """Sets our labels on the pods of a clique that has the desired pod spec. The clique itself is relabelled
    after them: its old hash says which of them are up to date. So a pod that has ours already is confirmed:
    if what upstream wrote to it is not observed yet, it would be outdated by the hash of the clique."""
    if not (upstream_hash := _upstream_hash(clique)):
        return []
    grove_labels = {labels.TEMPLATE_HASH: wanted.template_hash, labels.CLIQUE_TEMPLATE: wanted.template.name}
    patches: list[Intent] = []
    for pod in pods:
        found = pod.metadata.labels.get(labels.TEMPLATE_HASH)
        if pod_state.terminating(pod):
            continue
        if found == upstream_hash:
            patches.append(patch_pod_metadata(pod, {"labels": grove_labels}))
        elif found == wanted.template_hash:
            patches.append(patch_pod_metadata(pod, {"resourceVersion": pod.metadata.resource_version}))
    return patches


def without_legacy_finalizers(finalizers: Iterable[str]) -> list[str]:
    return [name for name in finalizers if name not in LEGACY_FINALIZERS]


def remove_legacy_finalizers(snapshot: Snapshot) -> list[Intent]:
    """Removes upstream's finalizers from terminating cliques and groups."""
    parents: list[GroveObject] = [*snapshot.cliques.values(), *snapshot.groups.values()]
    return [
        patch_if_unchanged(
            found, {"metadata": {"finalizers": without_legacy_finalizers(found.metadata.finalizers)}}
        )
        for found in parents
        if found.metadata.deletion_timestamp is not None and has_legacy_finalizers(found.metadata)
    ]


def has_legacy_finalizers(found: ObjectMeta) -> bool:
    return not LEGACY_FINALIZERS.isdisjoint(found.finalizers)
