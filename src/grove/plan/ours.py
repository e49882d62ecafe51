"""Whose an object is: ours if our parent controls it, or if nobody does and it carries our labels.

The second happens when a parent was deleted with `--cascade=orphan` and made again: its children are taken
back. What another controls is left alone, whatever its labels say; and so is a pod that is not called as ours
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from msgspec.structs import replace

from grove.api import labels, names
from grove.api.pods import Pod
from grove.plan.pods import controller_uid
from grove.plan.sharing import Shared
from grove.plan.snapshot import Snapshot
from grove.plan.targets import Known

_NONE: Mapping[str, Known] = {}


class Households:
    """Pods by the clique that they belong to."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.orphans: dict[str, list[Pod]] = {}
        """Pods that nobody controls, by the name of the clique that they say they are of."""
        self._controlled: dict[str, list[Pod]] = {}
        for pod in pods:
            if uid := controller_uid(pod.metadata):
                self._controlled.setdefault(uid, []).append(pod)
            elif _left_behind(pod):
                self.orphans.setdefault(pod.metadata.labels.get(labels.CLIQUE, ""), []).append(pod)

    def of(self, clique: str, uid: str) -> tuple[Pod, ...]:
        """The pods of a clique."""
        return (*self._controlled.get(uid, ()), *self.orphans.get(clique, ()))


def keep_ours(snapshot: Snapshot) -> Snapshot:
    """The snapshot without what is not ours, and without parents that are on their way out.

    A part whose labels put it into another replica than its name is not this replica's: somebody changed
    them, and a slip of the hand must not cost a replica its parts.
    """
    uid = snapshot.workload.metadata.uid
    base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
    groups = {
        name: group for name, group in snapshot.groups.items() if _ours(group, uid) and _named(name, base)
    }
    cliques = {
        name: clique
        for name, clique in snapshot.cliques.items()
        if _ours(clique, _parent_uid(clique, uid, groups)) and _named(name, base)
    }
    return replace(
        snapshot,
        service=snapshot.service if snapshot.service and _ours(snapshot.service, uid) else None,
        groups=groups,
        cliques=cliques,
        gangs={
            name: gang for name, gang in snapshot.gangs.items() if _ours(gang, uid) and _named(name, base)
        },
        autoscalers={
            name: found
            for name, found in snapshot.autoscalers.items()
            if _ours(found, uid) and _named(name, base)
        },
        shared=keep_claims(snapshot.shared, uid, groups, cliques),
    )


def keep_claims(
    shared: Shared, set_uid: str, groups: Mapping[str, Known] = _NONE, cliques: Mapping[str, Known] = _NONE
) -> Shared:
    """Without claims that are not ours; of those on their way out, only the names are known."""
    if not shared.claims:
        return shared
    kept = {
        name: claim
        for name, claim in shared.claims.items()
        if _ours(claim, _claimant(claim, set_uid, groups, cliques))
    }
    leaving = [name for name, claim in shared.claims.items() if claim.metadata.deletion_timestamp is not None]
    return replace(shared, claims=kept, leaving=frozenset(leaving))


def _claimant(claim: Known, set_uid: str, groups: Mapping[str, Known], cliques: Mapping[str, Known]) -> str:
    """Whom a claim belongs to, by its labels; of a part that is not there, to nobody."""
    for label, parts in ((labels.CLIQUE, cliques), (labels.GROUP, groups)):
        if owner := claim.metadata.labels.get(label):
            return parts[owner].metadata.uid if owner in parts else ""
    return set_uid


def is_ours(found: Known, parents: Set[str]) -> bool:
    """Whether one of these parents controls it, or nobody does and it carries our labels."""
    controller = controller_uid(found.metadata)
    return controller in parents if controller else _labelled(found)


def is_our_pod(pod: Pod, cliques: Set[str]) -> bool:
    """The same for a pod, by the UIDs of its cliques."""
    controller = controller_uid(pod.metadata)
    return controller in cliques if controller else _left_behind(pod)


def _left_behind(pod: Pod) -> bool:
    """Whether a pod that nobody controls was once of the clique that it says. Whoever copies a pod to look
    into it copies its labels: a name that no pod of the clique could have says that it never was."""
    return _labelled(pod) and names.may_be_pod(pod.metadata.name, pod.metadata.labels.get(labels.CLIQUE, ""))


def _named(name: str, base: str) -> bool:
    """Whether a name can be that of a part of the replica: all of them begin like its base gang."""
    return name == base or name.startswith(f"{base}-")


def _parent_uid(clique: Known, set_uid: str, groups: Mapping[str, Known]) -> str:
    """A member of a group belongs to the group; of a group that is not there, to nobody."""
    group = clique.metadata.labels.get(labels.GROUP)
    if not group:
        return set_uid
    parent = groups.get(group)
    return parent.metadata.uid if parent else ""


def _ours(found: Known, parent_uid: str) -> bool:
    if found.metadata.deletion_timestamp is not None or not parent_uid:
        return False
    return is_ours(found, {parent_uid})


def _labelled(found: Known) -> bool:
    return found.metadata.labels.get(labels.MANAGED_BY) == labels.OPERATOR
