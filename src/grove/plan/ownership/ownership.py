"""Decides which objects a set owns: those that it or its parts control, and orphans with its labels.

Orphans exist when a parent was deleted with `--cascade=orphan` and created again: its children are adopted.
An object with another controller is ignored, whatever its labels are; so is a pod whose name does not match
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from msgspec.structs import replace

from grove.api.naming import labels, names
from grove.api.types.pod import Pod
from grove.plan.members.pod_state import controller_uid
from grove.plan.snapshot import ClaimObjects, Snapshot
from grove.plan.writes.builders import CachedObject

_NONE: Mapping[str, CachedObject] = {}


class PodsByClique:
    """Pods by the clique that they belong to."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.orphans: dict[str, list[Pod]] = {}
        """Pods without a controller, by the clique of their label."""
        self._controlled: dict[str, list[Pod]] = {}
        for pod in pods:
            if uid := controller_uid(pod.metadata):
                self._controlled.setdefault(uid, []).append(pod)
            elif _is_orphan(pod):
                self.orphans.setdefault(pod.metadata.labels.get(labels.CLIQUE, ""), []).append(pod)

    def of(self, clique: str, uid: str) -> tuple[Pod, ...]:
        """The pods of a clique."""
        return (*self._controlled.get(uid, ()), *self.orphans.get(clique, ()))


def keep_owned(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot without objects that the set does not own, and without terminating parents.

    An object whose labels name another replica than its name does not belong to this replica: its labels were
    edited, and such a mistake must not cost a replica its objects.
    """
    uid = snapshot.workload.metadata.uid
    base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
    groups = {
        name: group
        for name, group in snapshot.groups.items()
        if _is_owned_and_active(group, uid) and _has_replica_prefix(name, base)
    }
    cliques = {
        name: clique
        for name, clique in snapshot.cliques.items()
        if _is_owned_and_active(clique, _parent_uid(clique, uid, groups)) and _has_replica_prefix(name, base)
    }
    return replace(
        snapshot,
        service=snapshot.service
        if snapshot.service and _is_owned_and_active(snapshot.service, uid)
        else None,
        groups=groups,
        cliques=cliques,
        gangs={
            name: gang
            for name, gang in snapshot.gangs.items()
            if _is_owned_and_active(gang, uid) and _has_replica_prefix(name, base)
        },
        autoscalers={
            name: found
            for name, found in snapshot.autoscalers.items()
            if _is_owned_and_active(found, uid) and _has_replica_prefix(name, base)
        },
        shared=keep_owned_claims(snapshot.shared, uid, groups, cliques),
    )


def keep_owned_claims(
    shared: ClaimObjects,
    set_uid: str,
    groups: Mapping[str, CachedObject] = _NONE,
    cliques: Mapping[str, CachedObject] = _NONE,
) -> ClaimObjects:
    """Drops claims that the set does not own; of terminating ones only the names are kept."""
    if not shared.claims:
        return shared
    kept = {
        name: claim
        for name, claim in shared.claims.items()
        if _is_owned_and_active(claim, _claim_owner_uid(claim, set_uid, groups, cliques))
    }
    terminating = [
        name for name, claim in shared.claims.items() if claim.metadata.deletion_timestamp is not None
    ]
    return replace(shared, claims=kept, terminating=frozenset(terminating))


def _claim_owner_uid(
    claim: CachedObject, set_uid: str, groups: Mapping[str, CachedObject], cliques: Mapping[str, CachedObject]
) -> str:
    """The UID of a claim's owner, by its labels; empty if that part does not exist."""
    for label, parts in ((labels.CLIQUE, cliques), (labels.GROUP, groups)):
        if owner := claim.metadata.labels.get(label):
            return parts[owner].metadata.uid if owner in parts else ""
    return set_uid


def is_owned(found: CachedObject, parents: Set[str]) -> bool:
    """Whether one of these parents controls the object, or nothing does and it has our labels."""
    controller = controller_uid(found.metadata)
    return controller in parents if controller else _is_managed(found)


def is_owned_pod(pod: Pod, cliques: Set[str]) -> bool:
    """The same for a pod, by the UIDs of its cliques."""
    controller = controller_uid(pod.metadata)
    return controller in cliques if controller else _is_orphan(pod)


def _is_orphan(pod: Pod) -> bool:
    """Whether a pod without a controller was once created for the clique of its label. A user who copies a
    pod for debugging copies its labels: a name that no pod of the clique can have shows that."""
    return _is_managed(pod) and names.is_pod_name(
        pod.metadata.name, pod.metadata.labels.get(labels.CLIQUE, "")
    )


def _has_replica_prefix(name: str, base: str) -> bool:
    """Whether a name can be that of an object of the replica: they all start with the name of its base
    gang."""
    return name == base or name.startswith(f"{base}-")


def _parent_uid(clique: CachedObject, set_uid: str, groups: Mapping[str, CachedObject]) -> str:
    """The UID of a clique's parent: its group if it is in one, else the set; empty if the group does not
    exist."""
    group = clique.metadata.labels.get(labels.GROUP)
    if not group:
        return set_uid
    parent = groups.get(group)
    return parent.metadata.uid if parent else ""


def _is_owned_and_active(found: CachedObject, parent_uid: str) -> bool:
    if found.metadata.deletion_timestamp is not None or not parent_uid:
        return False
    return is_owned(found, {parent_uid})


def _is_managed(found: CachedObject) -> bool:
    return found.metadata.labels.get(labels.MANAGED_BY) == labels.OPERATOR
