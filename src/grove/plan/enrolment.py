"""The cliques of a replica with what is known of each: its object, its pods, who its members should be."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.api.pods import Pod
from grove.plan import ledger
from grove.plan.expand import Clique
from grove.plan.ours import Households
from grove.plan.snapshot import Snapshot
from grove.plan.status import CliqueView
from grove.plan.takeover import same_by_upstream
from grove.plan.tally import tally


class Enrolled(Struct, frozen=True):
    """A clique whose members are decided."""

    wanted: Clique
    found: PodClique | None
    uid: str
    """Of the PodClique; a late one if it is made in the same plan."""
    membership: ledger.Membership
    view: CliqueView
    pods: tuple[Pod, ...] = ()
    """All its pods, those on their way out too."""
    theirs: str = ""
    """The hash that upstream gave its latest pods, until they have ours."""
    fences: tuple[str, ...] = ()
    """Writes that must have been done before its gang forgets a member."""

    @property
    def members(self) -> tuple[ledger.Member, ...]:
        return self.membership.members


class Enrolment:
    """Decides on one clique after another."""

    def __init__(self, snapshot: Snapshot, households: Households, now: float) -> None:
        self._snapshot, self._households, self._now = snapshot, households, now
        self._names = frozenset(pod.metadata.name for pod in snapshot.pods)
        self._references = {
            (gang.metadata.name, group.name): tuple(reference.name for reference in group.pod_references)
            for gang in snapshot.gangs.values()
            for group in gang.spec.pod_groups
        }

    def enrol(self, clique: Clique, uid: str, outgoing: frozenset[str] = frozenset()) -> Enrolled:
        """Decide who belongs to a clique, and count how its pods fare. Those that are `outgoing` are
        replaced."""
        found = self._snapshot.cliques.get(clique.name)
        pods = self._households.of(clique.name, uid)
        roll = ledger.Roll(
            clique=clique.name,
            uid=uid,
            epoch=_epoch(self._snapshot.gangs.get(clique.gang), found),
            references=self._references.get((clique.gang, clique.name), ()),
            pods=pods,
            names=self._names,
            departed=self._snapshot.departed,
            template_hash=clique.template_hash,
            outgoing=outgoing,
        )
        membership = ledger.enrol(roll, clique.replicas, self._now)
        leaving = {pod.metadata.uid for pod in membership.leaving}
        staying = [pod for pod in pods if pod.metadata.uid not in leaving] if leaving else pods
        theirs = same_by_upstream(self._snapshot.workload, found, clique)
        reached = found is not None and found.status.current_pod_template_hash == clique.template_hash
        view = CliqueView(clique, tally(staying, clique.template_hash, theirs), reached)
        return Enrolled(clique, found, uid, membership, view, pods, theirs)


def by_replica(cliques: Iterable[Enrolled], group: str) -> dict[int, list[Enrolled]]:
    """The cliques of a group, replica by replica."""
    replicas: dict[int, list[Enrolled]] = {}
    for clique in cliques:
        if clique.wanted.group is not None and clique.wanted.group.name == group:
            replicas.setdefault(clique.wanted.group_replica, []).append(clique)
    return replicas


def _epoch(gang: PodGang | None, clique: PodClique | None) -> str:
    """Tells one decision to add members from every other. A gang that was lost leaves the clique, which has
    changed since its first members were named."""
    if gang is not None:
        return f"{gang.metadata.uid}/{gang.metadata.generation}"
    return clique.metadata.resource_version if clique is not None else ""
