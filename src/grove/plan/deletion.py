"""Plans the deletion of a set (`plan_deletion`): deletes all objects that the set owns, then removes its
finalizer. The garbage collector would do this too, and is slow.

    pods deleted -> cliques, groups, gangs deleted -> pods gone -> the rest deleted -> finalizer removed

With claims or fabric domains, cliques, groups and gangs are deleted with the rest: claims are deleted with
their owners, and then fabric domains are released (`fabric`).

Every object is deleted by itself, with its UID as precondition. So a late delete cannot hit the objects of a
successor set with the same name, and objects that only have matching labels stay. Single deletes are also
faster: the API server handles a collection delete sequentially, and many requests in parallel. Objects that
are terminating are not deleted again, so each pass covers what is left. Deletes that succeed emit no events.

With `--cascade=orphan` the garbage collector removes the set from the owner references of its objects, and
then its own finalizer from the set: afterwards the set looks like any other terminating set. So one object
must prove that the set still owns it, or nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from msgspec.structs import replace

from grove.api.intents import Delete, Patch, Target
from grove.api.naming import well_known
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata, Service
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain
from grove.plan import autoscaling
from grove.plan.autoscaling import delete_autoscaler
from grove.plan.desired import shared_claims
from grove.plan.fabric.state import is_managed
from grove.plan.members.pod_state import controller_uid
from grove.plan.model import Plan
from grove.plan.ownership.ownership import is_owned, is_owned_pod
from grove.plan.rbac import delete_rbac
from grove.plan.resource_claims import delete_claim
from grove.plan.scale_in import deletes_delayed_until
from grove.plan.snapshot import OwnedObjects
from grove.plan.writes.builders import (
    CachedObject,
    GroveObject,
    confirm,
    delete,
    delete_of_kind,
    delete_pod,
    patch_if_unchanged,
    reference,
    target_of_kind,
)

T = TypeVar("T", bound=CachedObject)

_Other = Service | HorizontalPodAutoscaler | PartialObjectMetadata

ORPHAN = "orphan"  # the garbage collector's finalizer of `--cascade=orphan`


def plan_deletion(workload: PodCliqueSet, owned_objects: OwnedObjects, now: float) -> Plan:
    """Returns the next step for a terminating set. With `--cascade=orphan` all of its objects stay."""
    finalizers, uid = workload.metadata.finalizers, workload.metadata.uid
    if well_known.SET_FINALIZER not in finalizers:
        return Plan()
    if ORPHAN not in finalizers and (precondition := _confirm_ownership(uid, owned_objects)):
        references = {clique.metadata.uid: reference(clique) for clique in owned_objects.cliques}
        deletions = [
            delete_pod(pod, clique=references.get(controller_uid(pod.metadata)))
            for pod in _pods(uid, owned_objects)
            if not _is_terminating(pod)
        ]
        if not (deletions or owned_objects.claims or owned_objects.domains):
            deletions = _part_deletions(uid, owned_objects)
        # Also pods whose clique is gone, which cannot prove that they are those of the set.
        terminating = filter(_is_terminating, owned_objects.pods)
        if not deletions and (wait_until := deletes_delayed_until(terminating, now)) is not None:
            return Plan(requeue_at=wait_until)
        if deletions := deletions or _other_deletions(uid, owned_objects):
            return Plan(
                (precondition, *(replace(deletion, after=(precondition.id,)) for deletion in deletions))
            )
    if ORPHAN not in finalizers and any(map(_blocks_deletion, owned_objects.domains)):
        return Plan()  # released when the pods are gone; that change enqueues the set again
    rest = [name for name in finalizers if name != well_known.SET_FINALIZER]
    return Plan((patch_if_unchanged(workload, {"metadata": {"finalizers": rest}}),))


def _blocks_deletion(domain: Domain) -> bool:
    """Whether a domain that the operator manages is not terminating yet, or still has the operator's
    finalizer."""
    held = well_known.COMPUTE_DOMAIN_FINALIZER in domain.metadata.finalizers
    return is_managed(domain) and (held or not _is_terminating(domain))


def _confirm_ownership(uid: str, owned_objects: OwnedObjects) -> Patch | None:
    """A precondition that fails if the object that proves the set's ownership has changed since it was
    observed."""
    parts: Iterable[GroveObject] = chain[GroveObject](
        owned_objects.gangs, owned_objects.groups, owned_objects.cliques
    )
    owned = sorted((part for part in parts if controller_uid(part.metadata) == uid), key=_is_terminating)
    if owned:
        return confirm(owned[0])
    others: tuple[_Other, ...] = (*owned_objects.services, *owned_objects.autoscalers, *owned_objects.claims)
    for found in others:
        if controller_uid(found.metadata) == uid:
            version = {"resourceVersion": found.metadata.resource_version}
            return Patch(_target(found), {"metadata": version})
    return None


def _target(found: _Other) -> Target:
    if isinstance(found, Service):
        return target_of_kind("v1", "Service", found)
    kind = shared_claims if isinstance(found, PartialObjectMetadata) else autoscaling
    return target_of_kind(kind.API_VERSION, kind.KIND, found)


def _pods(uid: str, owned_objects: OwnedObjects) -> list[Pod]:
    """The pods of the set. They are deleted first because they hold GPUs and the other objects hold nothing:
    every request for those would slow down the termination of pods. A client that waits for the last pod
    must find neither cliques nor gangs, so that these follow at once. The other objects follow when the pods
    are gone, or after `timing.SCALE_IN_POD_WAIT`."""
    cliques = _owned_uids({uid, *_owned_uids({uid}, owned_objects.groups)}, owned_objects.cliques)
    return [pod for pod in owned_objects.pods if is_owned_pod(pod, cliques)]


def _part_deletions(uid: str, owned_objects: OwnedObjects) -> list[Delete]:
    """Autoscalers, whose targets are deleted, cliques, groups and gangs."""
    groups = {uid, *_owned_uids({uid}, owned_objects.groups)}
    parts = chain[GroveObject](
        _to_delete(groups, owned_objects.cliques),
        _to_delete({uid}, owned_objects.groups),
        _to_delete({uid}, owned_objects.gangs),
    )
    autoscalers = map(delete_autoscaler, _to_delete({uid}, owned_objects.autoscalers))
    return [*autoscalers, *map(delete, parts)]


def _other_deletions(uid: str, owned_objects: OwnedObjects) -> list[Delete]:
    groups = {uid, *_owned_uids({uid}, owned_objects.groups)}
    cliques = {*groups, *_owned_uids(groups, owned_objects.cliques)}
    return [
        *map(delete_claim, _to_delete(cliques, owned_objects.claims)),
        *_part_deletions(uid, owned_objects),
        *(delete_of_kind("v1", "Service", found) for found in _to_delete({uid}, owned_objects.services)),
        *delete_rbac(uid, owned_objects.access),
    ]


def _owned_uids(parents: set[str], parts: Iterable[CachedObject]) -> set[str]:
    return {part.metadata.uid for part in parts if is_owned(part, parents)}


def _to_delete(parents: set[str], parts: Iterable[T]) -> Iterator[T]:
    """The objects of these parents that are not terminating."""
    return (part for part in parts if is_owned(part, parents) and not _is_terminating(part))


def _is_terminating(part: CachedObject) -> bool:
    return part.metadata.deletion_timestamp is not None
