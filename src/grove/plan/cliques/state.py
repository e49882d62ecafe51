"""Combines, for each clique of a replica, its object, its pods, its desired members and its health."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from grove.api.intents import ObjectRef
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podgang import PodGang
from grove.plan.cliques.health import CliqueHealth
from grove.plan.desired.expand import Clique
from grove.plan.members.counts import count_pods
from grove.plan.members.membership import Member, Membership, ObservedMembers, decide_members
from grove.plan.ownership.ownership import PodsByClique
from grove.plan.ownership.upstream_adoption import upstream_template_hash
from grove.plan.snapshot import Snapshot
from grove.plan.writes.events import UpdatedUnit


class CliqueState(Struct, frozen=True):
    """A clique whose members are decided."""

    wanted: Clique
    found: PodClique | None
    ref: ObjectRef
    """The PodClique: owner of its pods, object of their events and errors. Its UID is a deferred value if the
    same plan creates it."""
    membership: Membership
    view: CliqueHealth
    pods: tuple[Pod, ...] = ()
    """All its pods, including terminating ones."""
    upstream_hash: str = ""
    """Upstream's hash for the current template, until the pods have ours."""
    fences: tuple[str, ...] = ()
    """The ids of writes that must succeed before its gang drops a member."""
    unit: UpdatedUnit | None = None
    """What an update replaces together with the members that it replaces; None if it replaces none."""

    @property
    def members(self) -> tuple[Member, ...]:
        return self.membership.members


DecideMembers = Callable[[Clique, frozenset[str]], CliqueState]
"""Decides the members of a clique, with successors for those that have these names."""


class MembershipPlanner:
    """Decides the members of one clique after another."""

    def __init__(
        self, snapshot: Snapshot, pods_by_clique: PodsByClique, generation_hash: str, now: float
    ) -> None:
        self._generation_hash = generation_hash
        self._snapshot, self._pods_by_clique, self._now = snapshot, pods_by_clique, now
        self._names = frozenset(pod.metadata.name for pod in snapshot.pods)
        self._references = {
            (gang.metadata.name, group.name): tuple(reference.name for reference in group.pod_references)
            for gang in snapshot.gangs.values()
            for group in gang.spec.pod_groups
        }

    def decide_members(
        self, clique: Clique, ref: ObjectRef, replaced: frozenset[str] = frozenset()
    ) -> CliqueState:
        """Decides the members of a clique, whose PodClique is `ref`, and counts its pods. Members whose names
        are in `replaced` get a successor."""
        found = self._snapshot.cliques.get(clique.name)
        pods = self._pods_by_clique.of(clique.name, ref.uid)
        observed = ObservedMembers(
            clique=clique.name,
            uid=ref.uid,
            gang_version=_gang_version(self._snapshot.gangs.get(clique.gang), found),
            references=self._references.get((clique.gang, clique.name), ()),
            pods=pods,
            names=self._names,
            deleted_pods=self._snapshot.deleted_pods,
            template_hash=clique.template_hash,
            replaced=replaced,
        )
        membership = decide_members(observed, clique.replicas, self._now)
        deleted = {pod.metadata.uid for pod in membership.to_delete}
        staying = [pod for pod in pods if pod.metadata.uid not in deleted] if deleted else pods
        upstream_hash = upstream_template_hash(self._snapshot.workload, found, clique)
        was_updated = found is not None and self._was_updated(found, clique)
        view = CliqueHealth(clique, count_pods(staying, clique, upstream_hash), was_updated)
        return CliqueState(clique, found, ref, membership, view, pods, upstream_hash)

    def _was_updated(self, found: PodClique, clique: Clique) -> bool:
        """Whether all pods of a clique once had the latest template, by its status. A restart changes only
        the generation hash."""
        status = found.status
        restarted = (
            not clique.restarts or status.current_pod_clique_set_generation_hash == self._generation_hash
        )
        return restarted and status.current_pod_template_hash == clique.template_hash


def _gang_version(gang: PodGang | None, clique: PodClique | None) -> str:
    """Identifies one decision to add members. If the gang was lost, the version of the clique serves: it has
    changed since its first members were named."""
    if gang is not None:
        return f"{gang.metadata.uid}/{gang.metadata.generation}"
    return clique.metadata.resource_version if clique is not None else ""
