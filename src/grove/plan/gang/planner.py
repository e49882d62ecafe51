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

from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.api.naming import labels
from grove.api.types.podclique import PodClique
from grove.plan.desired import objects
from grove.plan.desired.expand import Clique, Gang
from grove.plan.desired.initcontainer import with_init_container
from grove.plan.desired.podspec import pod, pod_spec
from grove.plan.desired.shared_claims import with_claims
from grove.plan.fabric.replica_domains import ReplicaDomains
from grove.plan.gang.scheduler_objects import SchedulerObjects
from grove.plan.gang.startup_dependencies import StartupDependencies
from grove.plan.members import pod_state
from grove.plan.members.clique_state import CliqueState
from grove.plan.members.membership import Member
from grove.plan.members.scheduling_gates import remove_gates
from grove.plan.ownership.repair import ObjectRepair
from grove.plan.rbac import token_secret
from grove.plan.resource_claims import ClaimPlanner
from grove.plan.scale_in import count_owners
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import create, delete_pod, patch_pod_metadata
from grove.plan.writes.collector import WriteCollector
from grove.schedulers.backend import with_pod_additions

_IDENTITY_LABELS = frozenset(
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
_STANDALONE, _MEMBER = labels.ComponentLabel.CLIQUE.value, labels.ComponentLabel.MEMBER_CLIQUE.value


class GangPlanner:
    """Plans the gangs of one replica."""

    def __init__(
        self,
        snapshot: Snapshot,
        cliques: Mapping[str, CliqueState],
        repair: ObjectRepair,
        dependencies: StartupDependencies,
        claims: ClaimPlanner,
        writes: WriteCollector,
        annotations: Callable[[Gang], Mapping[str, str]],
        domains: ReplicaDomains,
    ) -> None:
        self._annotations, self._domains = annotations, domains
        self._snapshot, self._cliques, self._repair, self._writes = snapshot, cliques, repair, writes
        self._dependencies, self._claims = dependencies, claims
        self.scheduler_objects = SchedulerObjects(snapshot)
        self._scheduler = self.scheduler_objects.scheduler
        self.awaiting_placement: list[str] = []
        """Gangs that wait for a place."""
        self._by_gang: dict[str, list[CliqueState]] = {}
        """All cliques of a gang, those that are scaled to 0 too."""
        for clique in cliques.values():
            self._by_gang.setdefault(clique.wanted.gang, []).append(clique)

    def plan(self, gang: Gang) -> None:
        """Plan all writes of a gang and its pods. One that could not start whole is not begun."""
        is_new = gang.name not in self._snapshot.gangs
        if is_new and any(map(self._blocked, gang.cliques)):
            return
        gated = self._awaits_placement(gang) or (bool(gang.base_gang) and not self._scheduled(gang.base_gang))
        references = {
            clique.name: self._cliques[clique.name].membership.references for clique in gang.cliques
        }
        annotations = {**self.scheduler_objects.annotations(), **self._annotations(gang)}
        body = self._repair.gang_body(gang, self._scheduler, references, annotations)
        write = self._repair.plan_gang(gang, body)
        scheduler_write = self.scheduler_objects.plan_object(body, self._uid(gang, write))
        departures = {clique.wanted.name: _delete_pods(clique) for clique in self._by_gang.get(gang.name, ())}
        pod_writes = self._pod_writes(gang, body, gated, departures)
        gate_removals = [] if gated else self._gate_removals(gang, departures)
        fences = self._fences(gang)
        after: tuple[str, ...] = ()
        if write is not None:
            claims = self._claims.writes_before_gang(gang, self._cliques) if is_new else ()
            after = (self._writes.add(replace(write, after=(*write.after, *fences, *claims))),)
        elif pod_writes:
            after = (*fences, self._writes.confirm(self._snapshot.gangs[gang.name]))
        if scheduler_write is not None:
            after = (*after, self._writes.add(replace(scheduler_write, after=after)))
        self._writes.add_all(
            replace(pod_write, after=(*pod_write.after, *after)) for pod_write in pod_writes + gate_removals
        )
        for clique_state in self._by_gang.get(gang.name, ()):
            self._writes.add_all(_relabel_pods(clique_state))

    def _blocked(self, clique: Clique) -> bool:
        """Whether some of its pods could not be made."""
        missing = self._cliques[clique.name].membership.missing
        return self._dependencies.blocked(clique) or any(
            self._claims.lacks_claim(clique, member) for member in missing
        )

    def _uid(self, gang: Gang, write: Create | Patch | None) -> str:
        if isinstance(write, Create):
            return uid_of(write)
        return self._snapshot.gangs[gang.name].metadata.uid

    def _awaits_placement(self, gang: Gang) -> bool:
        placements = self._snapshot.placements
        if placements is None or gang.name in placements:
            return False
        self.awaiting_placement.append(gang.name)
        return True

    def _node_selector(self, clique: Clique) -> Mapping[str, str]:
        assignment = (self._snapshot.placements or {}).get(clique.gang)
        return assignment.node_selector(clique.name) if assignment else {}

    def _scheduled(self, gang: str) -> bool:
        return all(clique.view.scheduled for clique in self._by_gang.get(gang, ()))

    def _fences(self, gang: Gang) -> tuple[str, ...]:
        """What must still be so when names change on the gang. An old view of a count must not cost a pod its
        place; and pods that others took away may have gone with their clique, whose end we have not seen."""
        cliques = [
            clique.found
            for clique in self._by_gang.get(gang.name, ())
            if clique.found is not None and (clique.membership.scales_in or clique.membership.lost_pods)
        ]
        fences = [self._writes.confirm(clique) for clique in cliques]
        for clique_state in self._by_gang.get(gang.name, ()):
            fences += clique_state.fences
        if (found := self._snapshot.gangs.get(gang.name)) is not None:
            unknown = [group.name for group in found.spec.pod_groups if group.name not in self._cliques]
            fences += [
                self._writes.confirm(count)
                for name in unknown
                for count in count_owners(self._snapshot, name)
            ]
        return tuple(dict.fromkeys(fences))

    def _pod_writes(
        self, gang: Gang, body: objects.Body, gated: bool, departures: Departures
    ) -> list[Intent]:
        pod_writes: list[Intent] = []
        for clique_state in self._by_gang.get(gang.name, ()):
            leaving = departures[clique_state.wanted.name]
            pod_writes += chain.from_iterable(leaving.values())
            pod_writes += self._adopt_pods(clique_state, leaving)
        for clique in gang.cliques:
            pod_writes += self._create_pods(self._cliques[clique.name], body, gated, departures[clique.name])
        return pod_writes

    def _create_pods(
        self, clique: CliqueState, gang: objects.Body, gated: bool, departures: DeletesByIndex
    ) -> list[Create]:
        missing = clique.membership.missing
        if (
            not missing
            or self._dependencies.blocked(clique.wanted)
            or self.scheduler_objects.failed(clique.wanted.gang)
        ):
            return []
        if self._domains.blocked(clique.wanted):
            return []
        made = [member for member in missing if not self._claims.lacks_claim(clique.wanted, member)]
        workload, index, wanted = self._snapshot.workload, self._snapshot.index, clique.wanted
        object_labels = objects.clique_labels(workload, index, wanted)
        owners, after = self._owners(clique)
        members = (member.pod for other in self._by_gang[wanted.gang] for member in other.membership.members)
        marks = self.scheduler_objects.marks(gang, wanted.name, members)
        if marks is None:
            return []
        waiting = {member.name: gated or self._is_above_minimum(wanted, member) for member in made}
        specs = {held: self._pod_spec(wanted, held) for held in set(waiting.values())}

        def create_pod(member: Member) -> Create:
            spec = with_claims(specs[waiting[member.name]], self._claims.names_for(wanted, member))
            body = with_pod_additions(pod(workload, wanted, member, spec, object_labels, owners), marks)
            predecessors = _ids(departures, member.index)
            return create(body, (*after, *self._claims.writes_before_pod(wanted, member), *predecessors))

        return [create_pod(member) for member in made]

    def _pod_spec(self, wanted: Clique, gated: bool) -> objects.Body:
        workload, index = self._snapshot.workload, self._snapshot.index
        startup_parents, node_selector = self._dependencies.parents_of(wanted), self._node_selector(wanted)
        if startup_parents and wanted.gang in self._snapshot.gangs:
            self._writes.add(token_secret(workload))
        spec = pod_spec(workload, index, wanted, self._scheduler, gated, node_selector)
        if startup_parents:
            spec = with_init_container(
                spec, workload.metadata.name, self._snapshot.init_image, startup_parents
            )
        return spec

    def _is_above_minimum(self, clique: Clique, member: Member) -> bool:
        """Whether a pod waits until every clique of its gang has its minimum: a scheduler that only counts
        the pods of a gang could otherwise take those of one clique for all."""
        if not self.scheduler_objects.minimum_first or member.index < clique.min_available:
            return False
        return not self._scheduled(clique.gang)

    def _adopt_pods(self, clique: CliqueState, departures: DeletesByIndex) -> list[Patch]:
        """Pods that nobody owns any more get their clique as owner again."""
        patches: list[Patch] = []
        for member in clique.membership.members:
            if member.pod is not None and not pod_state.controller_uid(member.pod.metadata):
                owners, after = self._owners(clique)
                references = [*objects.to_builtins(member.pod.metadata.owner_references), *owners]
                after += _ids(departures, member.index)
                patches.append(patch_pod_metadata(member.pod, {"ownerReferences": references}, after))
        return patches

    def _owners(self, clique: CliqueState) -> tuple[list[objects.Body], tuple[str, ...]]:
        """The clique as an owner, and what must be made before it can be one."""
        kind = PodClique.KIND
        made = self._repair.created(kind, clique.wanted.name)
        owners = objects.controller_reference(kind.api_version, kind.name, clique.wanted.name, clique.uid)
        return owners, (made.id,) if made else ()

    def _gate_removals(self, gang: Gang, departures: Departures) -> list[Patch]:
        gate_removals: list[Patch] = []
        for clique in gang.cliques:
            expected = self._node_selector(clique)
            for member in self._cliques[clique.name].membership.members:
                if member.pod is not None and not self._is_above_minimum(clique, member):
                    after = _ids(departures[clique.name], member.index)
                    gate_removals += (
                        replace(patch, after=after) for patch in remove_gates([member.pod], expected)
                    )
        return gate_removals


def _delete_pods(clique: CliqueState) -> DeletesByIndex:
    """The deletes of pods that are no longer members of a clique, by the index of the pod."""
    deletes: DeletesByIndex = {}
    for leaving in clique.membership.to_delete:
        deletes.setdefault(pod_state.index_of(leaving), []).append(delete_pod(leaving))
    return deletes


def _ids(departures: DeletesByIndex, index: int) -> tuple[str, ...]:
    return tuple(delete.id for delete in departures.get(index, ()))


def _relabel_pods(clique: CliqueState) -> list[Patch]:
    """Pods whose labels do not say any more where they belong: autoscalers and schedulers select by them, and
    containers learn from them which one they are."""
    expected = _identity_labels(clique.wanted)
    foreign = _IDENTITY_LABELS - expected.keys()
    patches: list[Patch] = []
    for member in clique.membership.members:
        if member.pod is None or pod_state.terminating(member.pod):
            continue
        expected[labels.POD_INDEX] = str(member.index)
        object_labels = member.pod.metadata.labels
        if expected.items() <= object_labels.items() and foreign.isdisjoint(object_labels):
            continue
        orphans = {
            key: expected.get(key) for key in _IDENTITY_LABELS if object_labels.get(key) != expected.get(key)
        }
        patches.append(patch_pod_metadata(member.pod, {"labels": orphans}))
    return patches


def _identity_labels(wanted: Clique) -> dict[str, str]:
    """What the labels of a pod say of where it belongs, but for its index."""
    expected = {
        labels.NAME: wanted.name,
        labels.COMPONENT: _STANDALONE,
        labels.CLIQUE: wanted.name,
        labels.CLIQUE_TEMPLATE: wanted.template.name,
        labels.POD_INDEX: "",
        labels.GANG: wanted.gang,
    }
    if wanted.group is not None:
        expected[labels.COMPONENT] = _MEMBER
        expected[labels.GROUP] = wanted.group.name
        expected[labels.GROUP_REPLICA] = str(wanted.group_replica)
    if wanted.base_gang:
        expected[labels.BASE_GANG] = wanted.base_gang
    return expected
