"""Decides the members of a clique's gang: the one place that decides which pods are created and deleted.

A PodGang names every pod of its cliques. This module decides, for one clique, what those names should be; the
names are written first, with the resourceVersion of the gang that was read, and only then is a pod created or
deleted. So a plan that is based on stale caches fails at the gang before it does harm: no second pod for an
index is created, and no second pod is deleted.

    references in the gang, in order
      -> slots: each name with its pod, if it exists; a slot whose pod is terminating, has ended or was
         deleted gets the name of a successor
      -> remove, or adopt and add, until there are as many slots as replicas
      -> indices: living pods keep theirs, all others take the lowest free ones

The name of a successor is derived from its predecessor's, that of a new slot from the version of the gang
that adds it: planned again, it is the same name. No name is used twice, unless its pod was deleted while no
operator was watching: then it is unknown whether the pod had been created.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from grove.api.intents import derived
from grove.api.naming import labels, names
from grove.api.types.pod import Pod, PodPhase
from grove.plan.members import pod_state
from grove.plan.members.crash_backoff import replacement_due

_PHASE_RANK = {PodPhase.UNKNOWN.value: 1, PodPhase.RUNNING.value: 2}  # everything else ranks as Pending


class Member(Struct, frozen=True, gc=False):
    """A slot in a clique: a name, an index, and the pod if it exists."""

    name: str
    index: int
    pod: Pod | None = None
    failures: int = 0
    """How many pods in a row have ended in this slot."""


class Membership(Struct, frozen=True, gc=False):
    """The desired members of a clique, and what follows once they are written."""

    members: tuple[Member, ...]
    to_delete: tuple[Pod, ...] = ()
    """Pods to delete: no longer members."""
    scales_in: bool = False
    """Whether a healthy pod is deleted because of the replica count, which is confirmed before."""
    lost_pods: bool = False
    """Whether a pod was deleted by others: by the garbage collector, if its clique is gone."""
    requeue_at: float | None = None

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def missing(self) -> tuple[Member, ...]:
        """Members whose pod is not created yet."""
        return tuple(member for member in self.members if member.pod is None)


class ObservedMembers(Struct, frozen=True, gc=False):
    """The observed state of one clique's pods."""

    clique: str
    uid: str
    """The UID of the PodClique; a deferred value if the same plan creates it."""
    gang_version: str
    """The version of the gang that the decision is based on."""
    references: tuple[str, ...]
    pods: tuple[Pod, ...]
    """Pods of the clique."""
    names: frozenset[str]
    """Names in use, by its pods or by others, such as a pod of a former clique with this name."""
    deleted_pods: frozenset[str]
    template_hash: str
    replaced: frozenset[str] = frozenset()
    """Members that an update or a termination replaces; that decision is recorded elsewhere."""


class _Slot(NamedTuple):
    name: str
    pod: Pod | None
    predecessor: str = ""  # not empty: the slot needs a new pod, whose name is derived from this one
    failures: int = 0


def decide_members(observed: ObservedMembers, count: int, now: float) -> Membership:
    """Decides the members of a clique for `count` replicas."""
    pods_by_name = {pod.metadata.name: pod for pod in observed.pods}
    return _unchanged(observed, pods_by_name, count) or _reassigned(observed, pods_by_name, count, now)


def _unchanged(observed: ObservedMembers, pods_by_name: dict[str, Pod], count: int) -> Membership | None:
    """The usual case without changes: every name has its living pod, in the order of the indices."""
    if observed.replaced or not len(observed.references) == len(pods_by_name) == count:
        return None
    members: list[Member] = []
    least = 0
    for name in observed.references:
        pod = pods_by_name.get(name)
        index = pod_state.index_of(pod) if pod is not None and pod_state.alive(pod) else None
        if index is None or index < least:
            return None
        members.append(Member(name, index, pod))
        least = index + 1
    return Membership(tuple(members))


def _reassigned(
    observed: ObservedMembers, pods_by_name: dict[str, Pod], count: int, now: float
) -> Membership:
    slots, requeue_at = _slots(observed, pods_by_name, now)
    slots = _deduplicate_indices(slots)
    kept = _remove_excess(slots, len(slots) - count, observed.template_hash)
    members = _assign_indices(observed, [*kept, *_adopt(observed, kept, count - len(kept))], count)
    staying = {member.pod.metadata.uid for member in members if member.pod is not None}
    to_delete = tuple(
        pod for pod in observed.pods if pod.metadata.uid not in staying and not pod_state.terminating(pod)
    )
    unplanned = (pod for pod in to_delete if pod.metadata.name not in observed.replaced)
    scales_in = len(slots) > count or any(map(pod_state.alive, unplanned))
    lost_pods = any(_was_deleted_externally(observed, pods_by_name, name) for name in observed.references)
    return Membership(members, to_delete, scales_in, lost_pods, requeue_at)


def _was_deleted_externally(observed: ObservedMembers, pods_by_name: dict[str, Pod], name: str) -> bool:
    """Whether others deleted a pod: the operator removes a name from the gang before it deletes the pod."""
    pod = pods_by_name.get(name)
    return pod_state.terminating(pod) if pod is not None else name in observed.deleted_pods


def _slots(
    observed: ObservedMembers, pods_by_name: dict[str, Pod], now: float
) -> tuple[list[_Slot], float | None]:
    slots: list[_Slot] = []
    requeue_at: float | None = None
    for name in dict.fromkeys(observed.references):
        pod = pods_by_name.get(name)
        if pod is None:
            gone = name in observed.deleted_pods or name in observed.names
            slots.append(_Slot(name, None, name if gone else ""))
        elif pod_state.terminating(pod) or name in observed.replaced:
            slots.append(_Slot(name, None, name))
        elif pod_state.ended(pod):
            due, failures = replacement_due(pod)
            if now >= due:
                slots.append(_Slot(name, None, name, failures))
            else:
                slots.append(_Slot(name, pod))
                requeue_at = due if requeue_at is None else min(requeue_at, due)
        else:
            slots.append(_Slot(name, pod))
    return slots, requeue_at


def _deduplicate_indices(slots: list[_Slot]) -> list[_Slot]:
    """Replaces the younger one of two pods with the same index: they would share a host name."""
    held: set[int] = set()
    duplicates: set[str] = set()
    for slot in sorted((slot for slot in slots if slot.pod), key=lambda slot: age_key(slot.pod)):
        assert slot.pod is not None
        index = pod_state.index_of(slot.pod)
        if index is None or index in held:
            duplicates.add(slot.name)
        else:
            held.add(index)
    return [_Slot(slot.name, None, slot.name) if slot.name in duplicates else slot for slot in slots]


def _remove_excess(slots: list[_Slot], excess: int, template_hash: str) -> list[_Slot]:
    """Removes the slots with the lowest keep priority; the others keep their order."""
    if excess <= 0:
        return slots
    youngest_first = sorted(slots, key=lambda slot: age_key(slot.pod), reverse=True)
    lowest_priority_first = sorted(youngest_first, key=lambda slot: _keep_priority(slot.pod, template_hash))
    removed = {slot.name for slot in lowest_priority_first[:excess]}
    return [slot for slot in slots if slot.name not in removed]


def _adopt(observed: ObservedMembers, slots: list[_Slot], room: int) -> list[_Slot]:
    """Adopts pods of the clique that no slot names, instead of creating new ones, if their index is free."""
    if room <= 0:
        return []
    used_indices = {pod_state.index_of(slot.pod) for slot in slots if slot.pod} | {None}
    named = {slot.name for slot in slots}
    adopted: list[_Slot] = []
    oldest_first = sorted(observed.pods, key=age_key)
    for pod in sorted(
        oldest_first, key=lambda pod: _keep_priority(pod, observed.template_hash), reverse=True
    ):
        index = pod_state.index_of(pod)
        if (
            len(adopted) < room
            and pod_state.alive(pod)
            and pod.metadata.name not in named
            and index not in used_indices
        ):
            adopted.append(_Slot(pod.metadata.name, pod))
            used_indices.add(index)
    return adopted


def _assign_indices(observed: ObservedMembers, slots: list[_Slot], count: int) -> tuple[Member, ...]:
    """Assigns index and name to every slot; references are in the order of indices."""
    held = {index for slot in slots if slot.pod and (index := pod_state.index_of(slot.pod)) is not None}
    failures = _failures_by_index(observed)
    free = (index for index in range(count + len(held)) if index not in held)
    members: list[Member] = []
    for slot in slots + [_Slot("", None)] * (count - len(slots)):
        if slot.pod is not None:
            index = pod_state.index_of(slot.pod)
            assert index is not None
            members.append(Member(slot.name, index, slot.pod))
            continue
        index = next(free)
        name = slot.name
        if slot.predecessor or not name:
            name = _new_name(observed, index, slot.predecessor or observed.gang_version)
        members.append(Member(name, index, None, max(slot.failures, failures.get(index, 0))))
    return tuple(sorted(members, key=lambda member: member.index))


def _failures_by_index(observed: ObservedMembers) -> dict[int | None, int]:
    """The failures that ended pods record for their index. After a successor was named and not created they
    are no longer members, and still the only record of the failures."""
    ended = [pod for pod in observed.pods if pod_state.ended(pod)]
    return {pod_state.index_of(pod): replacement_due(pod)[1] for pod in ended}


def is_successor(uid: str, clique: str, member: Member, predecessor: str) -> bool:
    """Whether the name of a member was derived from `predecessor`, which it replaced."""
    return member.name == derived(_pod_name, uid, clique, member.index, predecessor)


def _new_name(observed: ObservedMembers, index: int, predecessor: str) -> str:
    name = derived(_pod_name, observed.uid, observed.clique, index, predecessor)
    while name in observed.names or name in observed.deleted_pods:
        name = derived(_pod_name, observed.uid, observed.clique, index, name)
    return name


def _pod_name(uid: str, clique: str, index: int, predecessor: str) -> str:
    return names.pod(clique, uid, index, predecessor)


def age_key(pod: Pod | None) -> tuple[str, int, str]:
    """Sort key, oldest first; slots without a pod come last. Creation timestamps are whole seconds: of pods
    that were created together, the one with the lowest index is the oldest."""
    if pod is None:
        return ("~", 0, "")
    return (pod.metadata.creation_timestamp or "~", pod_state.index_of(pod) or 0, pod.metadata.name)


def _keep_priority(pod: Pod | None, template_hash: str) -> tuple[int, ...]:
    """Sort key, lowest priority to keep first: bound to a node, then phase, ready, current template."""
    if pod is None or pod_state.ended(pod):
        return (0, 0, 0, 0, 0)
    return (
        1,
        int(pod.spec.node_name != ""),
        _PHASE_RANK.get(pod.status.phase, 0),
        int(pod_state.ready(pod)),
        int(pod.metadata.labels.get(labels.TEMPLATE_HASH) == template_hash),
    )
