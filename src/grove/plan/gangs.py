"""One gang: who is in it is written down, then pods are made and deleted accordingly, then gates open.

    counts confirmed -> gang written -> scheduler told -> pods deleted, taken back -> pods made, gates opened

At most one pod of a clique and index may run (no gate, no deletion timestamp): a pod is created or ungated
after the delete of every other pod of its index has been answered. If that delete is refused, its successor
is not created; the next plan sends both again.

Where the gang is right as it is, its write is a confirmation: a patch that changes nothing and fails if the
gang has changed since we looked (see `ledger`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

from msgspec.structs import replace

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.plan import compose
from grove.plan import pods as state
from grove.plan.access import token_secret
from grove.plan.claims import Claims
from grove.plan.enrolment import Enrolled
from grove.plan.expand import Clique, Gang
from grove.plan.fabric import Fabric
from grove.plan.gates import released
from grove.plan.initcontainer import with_init_container
from grove.plan.ledger import Member
from grove.plan.mend import Mender
from grove.plan.podspec import pod, pod_spec
from grove.plan.retire import counts_behind
from grove.plan.sharing import with_claims
from grove.plan.snapshot import Snapshot
from grove.plan.targets import create, delete_pod, pod_patch
from grove.plan.telling import Teller
from grove.plan.waits import Waits
from grove.plan.writes import Writes
from grove.schedulers.backend import marked

_PLACES = frozenset(
    {
        labels.NAME,
        labels.COMPONENT,
        labels.CLIQUE,
        labels.CLIQUE_TEMPLATE,
        labels.POD_INDEX,
        labels.GANG,
        labels.BASE_GANG,
        labels.GROUP,
        labels.GROUP_REPLICA,
    }
)
"""Labels that say where a pod belongs."""
DeletesByIndex = dict[int | None, list[Delete]]
Departures = Mapping[str, DeletesByIndex]
"""By the name of the clique."""
_ALONE, _MEMBER = labels.Component.CLIQUE.value, labels.Component.MEMBER_CLIQUE.value


class GangWork:
    """Plans the gangs of one replica."""

    def __init__(
        self,
        snapshot: Snapshot,
        cliques: Mapping[str, Enrolled],
        mender: Mender,
        waits: Waits,
        claims: Claims,
        writes: Writes,
        notes: Callable[[Gang], Mapping[str, str]],
        fabric: Fabric,
    ) -> None:
        self._notes, self._fabric = notes, fabric
        self._snapshot, self._cliques, self._mender, self._writes = snapshot, cliques, mender, writes
        self._waits, self._claims = waits, claims
        self.teller = Teller(snapshot)
        self._scheduler = self.teller.scheduler
        self.unplaced: list[str] = []
        """Gangs that wait for a place."""
        self._by_gang: dict[str, list[Enrolled]] = {}
        """All cliques of a gang, those that are scaled to 0 too."""
        for clique in cliques.values():
            self._by_gang.setdefault(clique.wanted.gang, []).append(clique)

    def plan(self, gang: Gang) -> None:
        """Plan all writes of a gang and its pods. One that could not start whole is not begun."""
        begins = gang.name not in self._snapshot.gangs
        if begins and any(map(self._held, gang.cliques)):
            return
        waits = self._unplaced(gang) or (bool(gang.base_gang) and not self._scheduled(gang.base_gang))
        references = {
            clique.name: self._cliques[clique.name].membership.references for clique in gang.cliques
        }
        notes = {**self.teller.notes(), **self._notes(gang)}
        body = self._mender.gang_body(gang, self._scheduler, references, notes)
        write = self._mender.gang(gang, body)
        telling = self.teller.tell(body, self._uid(gang, write))
        departures = {clique.wanted.name: _departures(clique) for clique in self._by_gang.get(gang.name, ())}
        deeds = self._deeds(gang, body, waits, departures)
        openings = [] if waits else self._openings(gang, departures)
        fences = self._fences(gang)
        after: tuple[str, ...] = ()
        if write is not None:
            claims = self._claims.before_gang(gang, self._cliques) if begins else ()
            after = (self._writes.add(replace(write, after=(*write.after, *fences, *claims))),)
        elif deeds:
            after = (*fences, self._writes.confirm(self._snapshot.gangs[gang.name]))
        if telling is not None:
            after = (*after, self._writes.add(replace(telling, after=after)))
        self._writes.add_all(replace(deed, after=(*deed.after, *after)) for deed in deeds + openings)
        for enrolled in self._by_gang.get(gang.name, ()):
            self._writes.add_all(_relabelled(enrolled))

    def _held(self, clique: Clique) -> bool:
        """Whether some of its pods could not be made."""
        missing = self._cliques[clique.name].membership.missing
        return self._waits.held(clique) or any(self._claims.lacks(clique, member) for member in missing)

    def _uid(self, gang: Gang, write: Create | Patch | None) -> str:
        if isinstance(write, Create):
            return uid_of(write)
        return self._snapshot.gangs[gang.name].metadata.uid

    def _unplaced(self, gang: Gang) -> bool:
        placements = self._snapshot.placements
        if placements is None or gang.name in placements:
            return False
        self.unplaced.append(gang.name)
        return True

    def _place(self, clique: Clique) -> Mapping[str, str]:
        assignment = (self._snapshot.placements or {}).get(clique.gang)
        return assignment.of(clique.name) if assignment else {}

    def _scheduled(self, gang: str) -> bool:
        return all(clique.view.scheduled for clique in self._by_gang.get(gang, ()))

    def _fences(self, gang: Gang) -> tuple[str, ...]:
        """What must still be so when names change on the gang. An old view of a count must not cost a pod its
        place; and pods that others took away may have gone with their clique, whose end we have not seen."""
        cliques = [
            clique.found
            for clique in self._by_gang.get(gang.name, ())
            if clique.found is not None and (clique.membership.gives_up or clique.membership.bereft)
        ]
        fences = [self._writes.confirm(clique) for clique in cliques]
        for enrolled in self._by_gang.get(gang.name, ()):
            fences += enrolled.fences
        if (found := self._snapshot.gangs.get(gang.name)) is not None:
            strange = [group.name for group in found.spec.pod_groups if group.name not in self._cliques]
            fences += [
                self._writes.confirm(count)
                for name in strange
                for count in counts_behind(self._snapshot, name)
            ]
        return tuple(dict.fromkeys(fences))

    def _deeds(self, gang: Gang, body: compose.Body, gated: bool, departures: Departures) -> list[Intent]:
        deeds: list[Intent] = []
        for enrolled in self._by_gang.get(gang.name, ()):
            leaving = departures[enrolled.wanted.name]
            deeds += chain.from_iterable(leaving.values())
            deeds += self._homecomings(enrolled, leaving)
        for clique in gang.cliques:
            deeds += self._births(self._cliques[clique.name], body, gated, departures[clique.name])
        return deeds

    def _births(
        self, clique: Enrolled, gang: compose.Body, gated: bool, departures: DeletesByIndex
    ) -> list[Create]:
        missing = clique.membership.missing
        if not missing or self._waits.held(clique.wanted) or self.teller.holds(clique.wanted.gang):
            return []
        if self._fabric.held(clique.wanted):
            return []
        made = [member for member in missing if not self._claims.lacks(clique.wanted, member)]
        workload, index, wanted = self._snapshot.workload, self._snapshot.index, clique.wanted
        carried = compose.clique_labels(workload, index, wanted)
        owners, after = self._owners(clique)
        members = (member.pod for other in self._by_gang[wanted.gang] for member in other.membership.members)
        marks = self.teller.marks(gang, wanted.name, members)
        if marks is None:
            return []
        waiting = {member.name: gated or self._is_surplus(wanted, member) for member in made}
        specs = {held: self._pod_spec(wanted, held) for held in set(waiting.values())}

        def birth(member: Member) -> Create:
            spec = with_claims(specs[waiting[member.name]], self._claims.of(wanted, member))
            body = marked(pod(workload, wanted, member, spec, carried, owners), marks)
            predecessors = _ids(departures, member.index)
            return create(body, (*after, *self._claims.before(wanted, member), *predecessors))

        return [birth(member) for member in made]

    def _pod_spec(self, wanted: Clique, gated: bool) -> compose.Body:
        workload, index = self._snapshot.workload, self._snapshot.index
        awaited, place = self._waits.of(wanted), self._place(wanted)
        if awaited and wanted.gang in self._snapshot.gangs:
            self._writes.add(token_secret(workload))
        spec = pod_spec(workload, index, wanted, self._scheduler, gated, place)
        if awaited:
            spec = with_init_container(spec, workload.metadata.name, self._snapshot.init_image, awaited)
        return spec

    def _is_surplus(self, clique: Clique, member: Member) -> bool:
        """Whether a pod waits until every clique of its gang has its minimum: a scheduler that only counts
        the pods of a gang could otherwise take those of one clique for all."""
        if not self.teller.minimum_first or member.index < clique.min_available:
            return False
        return not self._scheduled(clique.gang)

    def _homecomings(self, clique: Enrolled, departures: DeletesByIndex) -> list[Patch]:
        """Pods that nobody owns any more get their clique as owner again."""
        patches: list[Patch] = []
        for member in clique.membership.members:
            if member.pod is not None and not state.controller_uid(member.pod.metadata):
                owners, after = self._owners(clique)
                references = [*compose.plain(member.pod.metadata.owner_references), *owners]
                after += _ids(departures, member.index)
                patches.append(pod_patch(member.pod, {"ownerReferences": references}, after))
        return patches

    def _owners(self, clique: Enrolled) -> tuple[list[compose.Body], tuple[str, ...]]:
        """The clique as an owner, and what must be made before it can be one."""
        kind = PodClique.KIND
        made = self._mender.made(kind, clique.wanted.name)
        owners = compose.owner(kind.api_version, kind.name, clique.wanted.name, clique.uid)
        return owners, (made.id,) if made else ()

    def _openings(self, gang: Gang, departures: Departures) -> list[Patch]:
        openings: list[Patch] = []
        for clique in gang.cliques:
            place = self._place(clique)
            for member in self._cliques[clique.name].membership.members:
                if member.pod is not None and not self._is_surplus(clique, member):
                    after = _ids(departures[clique.name], member.index)
                    openings += (replace(patch, after=after) for patch in released([member.pod], place))
        return openings


def _departures(clique: Enrolled) -> DeletesByIndex:
    """The deletes of pods that are no longer members of a clique, by the index of the pod."""
    deletes: DeletesByIndex = {}
    for leaving in clique.membership.leaving:
        deletes.setdefault(state.index_of(leaving), []).append(delete_pod(leaving))
    return deletes


def _ids(departures: DeletesByIndex, index: int) -> tuple[str, ...]:
    return tuple(delete.id for delete in departures.get(index, ()))


def _relabelled(clique: Enrolled) -> list[Patch]:
    """Pods whose labels do not say any more where they belong: autoscalers and schedulers select by them, and
    containers learn from them which one they are."""
    place = _place(clique.wanted)
    foreign = _PLACES - place.keys()
    patches: list[Patch] = []
    for member in clique.membership.members:
        if member.pod is None or state.terminating(member.pod):
            continue
        place[labels.POD_INDEX] = str(member.index)
        carried = member.pod.metadata.labels
        if place.items() <= carried.items() and foreign.isdisjoint(carried):
            continue
        lost = {key: place.get(key) for key in _PLACES if carried.get(key) != place.get(key)}
        patches.append(pod_patch(member.pod, {"labels": lost}))
    return patches


def _place(wanted: Clique) -> dict[str, str]:
    """What the labels of a pod say of where it belongs, but for its index."""
    place = {
        labels.NAME: wanted.name,
        labels.COMPONENT: _ALONE,
        labels.CLIQUE: wanted.name,
        labels.CLIQUE_TEMPLATE: wanted.template.name,
        labels.POD_INDEX: "",
        labels.GANG: wanted.gang,
    }
    if wanted.group is not None:
        place[labels.COMPONENT] = _MEMBER
        place[labels.GROUP] = wanted.group.name
        place[labels.GROUP_REPLICA] = str(wanted.group_replica)
    if wanted.base_gang:
        place[labels.BASE_GANG] = wanted.base_gang
    return place
