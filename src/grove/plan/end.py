"""The end of a set: all that is its own goes, by us, for the garbage collector is slow; then it may go.

    pods deleted -> gone -> the rest deleted -> fabric domains let go (see `domains`) -> finalizer taken off

Everything is deleted one by one, as the object that was seen: whoever learns late that a set has gone can
not take down its successor of the same name, and what only looks like ours is spared. One by one is also
faster: the server works through a collection one object after another, but through many requests at once.
What is on its way out already is not asked again, so each pass is about what is left.

With `--cascade=orphan` the garbage collector takes the set off everything it owns and then its own finalizer
off the set: who comes later sees a set like any other that ends. So something that it owns must witness that
it still does, or nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api import marks
from grove.api.cliques import PodClique
from grove.api.cluster import Bare, HorizontalPodAutoscaler, Service
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Delete, Patch, Target
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Domain
from grove.plan import autoscalers, sharing
from grove.plan.access import Access, withdraw
from grove.plan.autoscalers import delete_autoscaler
from grove.plan.claims import delete_claim
from grove.plan.domain_states import is_managed
from grove.plan.model import Plan
from grove.plan.ours import is_our_pod, is_ours
from grove.plan.pods import controller_uid
from grove.plan.retire import awaited
from grove.plan.targets import Kinded, Known, change, confirm, delete, delete_pod, foreign_target

T = TypeVar("T", bound=Known)

_Other = Service | HorizontalPodAutoscaler | Bare

ORPHAN = "orphan"  # the garbage collector's finalizer of `--cascade=orphan`


class Estate(Struct, frozen=True):
    """All that carries the labels of a set that ends, whoever owns it."""

    services: tuple[Service, ...] = ()
    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    autoscalers: tuple[HorizontalPodAutoscaler, ...] = ()
    claims: tuple[Bare, ...] = ()
    pods: tuple[Pod, ...] = ()
    access: Access = Access()
    domains: tuple[Domain, ...] = ()
    """Fabric domains that name the set as an owner."""


def plan_end(workload: PodCliqueSet, estate: Estate, now: float) -> Plan:
    """The next step of a set that is being deleted. With `--cascade=orphan` everything stays."""
    finalizers, uid = workload.metadata.finalizers, workload.metadata.uid
    if marks.SET_FINALIZER not in finalizers:
        return Plan()
    if ORPHAN not in finalizers and (witness := _witness(uid, estate)):
        pods = _pods(uid, estate)
        deletions = [delete_pod(pod) for pod in pods if not _leaving(pod)]
        if not deletions and (waits := awaited(pods, now)) is not None:
            return Plan(wake_at=waits)
        if deletions := deletions or _other_deletions(uid, estate):
            return Plan((witness, *(replace(deletion, after=(witness.id,)) for deletion in deletions)))
    if ORPHAN not in finalizers and any(map(_held, estate.domains)):
        return Plan()  # it is let go when the pods are gone; that wakes us
    rest = [name for name in finalizers if name != marks.SET_FINALIZER]
    return Plan((change(workload, {"metadata": {"finalizers": rest}}),))


def _held(domain: Domain) -> bool:
    """Whether a domain of ours is there to stay, or could not go without us."""
    held = marks.COMPUTE_DOMAIN_FINALIZER in domain.metadata.finalizers
    return is_managed(domain) and (held or not _leaving(domain))


def _witness(uid: str, estate: Estate) -> Patch | None:
    """Confirms that something is still owned by the set: it fails if that has changed since we looked."""
    parts: Iterable[Kinded] = chain[Kinded](estate.gangs, estate.groups, estate.cliques)
    owned = sorted((part for part in parts if controller_uid(part.metadata) == uid), key=_leaving)
    if owned:
        return confirm(owned[0])
    others: tuple[_Other, ...] = (*estate.services, *estate.autoscalers, *estate.claims)
    for found in others:
        if controller_uid(found.metadata) == uid:
            version = {"resourceVersion": found.metadata.resource_version}
            return Patch(_target(found), {"metadata": version})
    return None


def _target(found: _Other) -> Target:
    if isinstance(found, Service):
        return foreign_target("v1", "Service", found)
    kind = sharing if isinstance(found, Bare) else autoscalers
    return foreign_target(kind.API_VERSION, kind.KIND, found)


def _pods(uid: str, estate: Estate) -> list[Pod]:
    """They go first: they hold GPUs, the rest holds nothing, and every request for it would keep the cluster
    from letting pods go. So it goes when they are gone, or take too long for that."""
    groups = _of({uid}, estate.groups)
    cliques = _of({uid, *(group.metadata.uid for group in groups)}, estate.cliques)
    uids = {clique.metadata.uid for clique in cliques}
    return [pod for pod in estate.pods if is_our_pod(pod, uids)]


def _other_deletions(uid: str, estate: Estate) -> list[Delete]:
    groups = list(_of({uid}, estate.groups))
    cliques = list(_of({uid, *(group.metadata.uid for group in groups)}, estate.cliques))
    parts: Iterable[Kinded] = chain[Kinded](cliques, groups, _of({uid}, estate.gangs))
    services = (service for service in _of({uid}, estate.services) if not _leaving(service))
    scalers = (found for found in _of({uid}, estate.autoscalers) if not _leaving(found))
    owners = {uid, *(group.metadata.uid for group in groups), *(clique.metadata.uid for clique in cliques)}
    claims = (claim for claim in _of(owners, estate.claims) if not _leaving(claim))
    return [
        *map(delete_claim, claims),
        *(delete(part) for part in parts if not _leaving(part)),
        *(Delete(foreign_target("v1", "Service", found), uid=found.metadata.uid) for found in services),
        *map(delete_autoscaler, scalers),
        *withdraw(uid, estate.access),
    ]


def _of(parents: set[str], parts: Iterable[T]) -> Iterator[T]:
    return (part for part in parts if is_ours(part, parents))


def _leaving(part: Known) -> bool:
    return part.metadata.deletion_timestamp is not None
