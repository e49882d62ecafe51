"""Whose an object is: ours if our parent controls it, or if nobody does and it carries our labels.

The second happens when a parent was deleted with `--cascade=orphan` and made again: its children are taken
back. What another controls is left alone, whatever its labels say; and so is a pod that is not called as ours
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from msgspec.structs import replace

from grove.api.naming import labels, names
from grove.api.types.pod import Pod
from grove.plan.desired.shared_claims import ClaimObjects
from grove.plan.members.pod_state import controller_uid
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import CachedObject

_NONE: Mapping[str, CachedObject] = {}


class PodsByClique:
    """Pods by the clique that they belong to."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.orphans: dict[str, list[Pod]] = {}
        """Pods that nobody controls, by the name of the clique that they say they are of."""
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
    """The snapshot without what is not ours, and without parents that are on their way out.

    A part whose labels put it into another replica than its name is not this replica's: somebody changed
    them, and a slip of the hand must not cost a replica its parts.
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
    """Without claims that are not ours; of those on their way out, only the names are known."""
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
    """Whom a claim belongs to, by its labels; of a part that is not there, to nobody."""
    for label, parts in ((labels.CLIQUE, cliques), (labels.GROUP, groups)):
        if owner := claim.metadata.labels.get(label):
            return parts[owner].metadata.uid if owner in parts else ""
    return set_uid


def is_owned(found: CachedObject, parents: Set[str]) -> bool:
    """Whether one of these parents controls it, or nobody does and it carries our labels."""
    controller = controller_uid(found.metadata)
    return controller in parents if controller else _is_managed(found)


def is_owned_pod(pod: Pod, cliques: Set[str]) -> bool:
    """The same for a pod, by the UIDs of its cliques."""
    controller = controller_uid(pod.metadata)
    return controller in cliques if controller else _is_orphan(pod)


def _is_orphan(pod: Pod) -> bool:
    """Whether a pod that nobody controls was once of the clique that it says. Whoever copies a pod to look
    into it copies its labels: a name that no pod of the clique could have says that it never was."""
    return _is_managed(pod) and names.is_pod_name(
        pod.metadata.name, pod.metadata.labels.get(labels.CLIQUE, "")
    )


def _has_replica_prefix(name: str, base: str) -> bool:
    """Whether a name can be that of a part of the replica: all of them begin like its base gang."""
    return name == base or name.startswith(f"{base}-")


def _parent_uid(clique: CachedObject, set_uid: str, groups: Mapping[str, CachedObject]) -> str:
    """A member of a group belongs to the group; of a group that is not there, to nobody."""
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
