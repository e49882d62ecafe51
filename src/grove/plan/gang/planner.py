"""Plans one gang at a time: writes its membership, then creates and deletes pods accordingly, then removes
scheduling gates.

    counts confirmed -> gang written -> scheduler object -> pods deleted, adopted -> pods created, ungated

At most one pod of a clique and index may run (no gate, no deletion timestamp): a pod is created or ungated
after the delete of every other pod of its index has been answered. If that delete is refused, its successor
is not created; the next plan sends both again.

If the gang needs no change, its write is a confirmation: a patch that changes nothing and fails if the gang
has changed since it was observed (see `members.membership`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain

from msgspec.structs import replace

from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.api.naming.well_known import HOSTNAME
from grove.api.types.podclique import PodClique
from grove.plan.cliques.state import CliqueState
from grove.plan.desired import objects
from grove.plan.desired.expand import Clique, Gang
from grove.plan.desired.initcontainer import with_init_container
from grove.plan.desired.podspec import pod_spec
from grove.plan.desired.shared_claims import with_claims
from grove.plan.fabric.affinity import only_preferred, packing_affinity
from grove.plan.fabric.replica_domains import waits_for_domain
from grove.plan.gang.creation_order import Write, by_size, one_after_another
from grove.plan.gang.placement import GangPlacement, PlacementPlanner, held_by_user
from grove.plan.gang.scheduler_objects import SchedulerObjects
from grove.plan.gang.startup_dependencies import StartupDependencies
from grove.plan.members import pod_state
from grove.plan.members.identity_labels import restore_identity_labels
from grove.plan.members.membership import Member
from grove.plan.members.pod_body import pod
from grove.plan.members.scheduling_gates import remove_gates
from grove.plan.ownership.repair import ObjectRepair
from grove.plan.placement.assignment import NO_NODE_LABELS, NodeLabels, PodSlot
from grove.plan.rbac import token_secret
from grove.plan.resource_claims import ClaimPlanner
from grove.plan.scale_in import count_owners
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import create, delete_pod, patch_pod_metadata
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.events import DeletesByIndex, pod_events
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason
from grove.schedulers.backend import PodAdditions, with_pod_additions

DeletesByClique = Mapping[str, DeletesByIndex]
"""By the name of the clique."""


class GangPlanner:
    """Plans the gangs of one replica."""

    def __init__(
        self,
        snapshot: Snapshot,
        gangs: Iterable[Gang],
        cliques: Mapping[str, CliqueState],
        repair: ObjectRepair,
        dependencies: StartupDependencies,
        claims: ClaimPlanner,
        writes: WriteCollector,
        annotations: Callable[[Gang], Mapping[str, str]],
        was_scheduled: Callable[[CliqueState], bool],
    ) -> None:
        self._annotations = annotations
        self._snapshot, self._cliques, self._repair, self._writes = snapshot, cliques, repair, writes
        self._dependencies, self._claims = dependencies, claims
        self.scheduler_objects = SchedulerObjects(snapshot)
        self._scheduler = self.scheduler_objects.scheduler
        self._gates_hold_group = self.scheduler_objects.gates_hold_group
        self.placements = PlacementPlanner(snapshot, cliques, gangs, was_scheduled)
        self._wait_reasons: dict[str, list[WaitReason]] = {}
        """By gang, what placement and the order of gangs say."""
        self.awaits_decision = False
        """Whether a new gang is written once it is decided where it goes."""
        self.awaits_successors = False
        """Whether pods are replaced whose successors are created once it is decided where they go."""
        self.holds_pods = False
        """Whether pods are gated or not created yet: a change of another pod may release them."""
        self.preferred_partitions: dict[str, str] = {}
        """By gang, why its scheduler only prefers one partition for a fabric domain; empty if it does not."""
        self._by_gang: dict[str, list[CliqueState]] = {}
        """All cliques of a gang, including those that are scaled to 0."""
        for clique in cliques.values():
            self._by_gang.setdefault(clique.wanted.gang, []).append(clique)

    def plan(self, gang: Gang) -> None:
        """Plans all writes of a gang and its pods. A gang of which some pods could not be created is not
        created at all."""
        is_new = gang.name not in self._snapshot.gangs
        if is_new and any(map(self._blocked, gang.cliques)):
            self.holds_pods = True
            return
        references = {
            clique.name: self._cliques[clique.name].membership.references for clique in gang.cliques
        }
        annotations = {**self.scheduler_objects.annotations(), **self._annotations(gang)}
        body_of = partial(self._repair.gang_body, gang, self._scheduler, references, annotations)
        waits_for_base = bool(gang.base_gang) and not self._scheduled(gang.base_gang)
        placement = self.placements.of(gang, body_of, waits_for_base, self._held(gang))
        if placement.awaits_decision and is_new:
            self.awaits_decision = self.holds_pods = True
            return
        self.awaits_successors |= (
            placement.awaits_decision and not self.placements.late and self._replaces_pods(gang)
        )
        if reason := placement.message or placement.delay:
            self.scheduler_objects.pending_reasons[gang.name] = reason
        self._wait_reasons[gang.name] = _wait_reasons(gang, placement)
        body = placement.annotated(body_of(placement.attempt))
        write = self._repair.plan_gang(gang, body, self.scheduler_objects.annotation_prefixes)
        scheduler_write = self.scheduler_objects.plan_object(body, self._uid(gang, write))
        deletes = {clique.wanted.name: _delete_pods(clique) for clique in self._by_gang.get(gang.name, ())}
        pod_writes = self._pod_writes(gang, body, placement, deletes)
        gate_removals = self._gate_removals(gang, placement, deletes)
        if not placement.applies:
            self.preferred_partitions[gang.name] = only_preferred(gang, partial(self._additions, body))
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
            self._writes.add_all(restore_identity_labels(clique_state.wanted, clique_state.members))

    def reasons_of(self, gang: str) -> list[WaitReason]:
        """Why the pods of a gang are not scheduled, as far as placement and its scheduler say it."""
        return [*self._wait_reasons.get(gang, ()), *self.scheduler_objects.wait_reasons(gang)]

    def _replaces_pods(self, gang: Gang) -> bool:
        """Whether pods of one of its cliques are deleted, and others created."""
        memberships = (clique.membership for clique in self._by_gang.get(gang.name, ()))
        return any(each.to_delete and each.missing for each in memberships)

    def _blocked(self, clique: Clique) -> bool:
        """Whether some of its pods cannot be created."""
        missing = self._cliques[clique.name].membership.missing
        return (
            (bool(missing) and waits_for_domain(clique))
            or self._dependencies.blocked(clique)
            or any(self._claims.lacks_claim(clique, member) for member in missing)
        )

    def _uid(self, gang: Gang, write: Create | Patch | None) -> str:
        if isinstance(write, Create):
            return uid_of(write)
        return self._snapshot.gangs[gang.name].metadata.uid

    def _held(self, gang: Gang) -> str:
        """What a gang waits for before it asks for nodes; empty if nothing."""
        if any(map(waits_for_domain, gang.cliques)):
            return "waits for its fabric domain"
        if any(map(self._blocked, gang.cliques)):
            return "waits for what its pods need before they can be created"
        if held_by_user(gang, self._cliques):
            return "waits for scheduling gates of the user"
        return ""

    def _scheduled(self, gang: str) -> bool:
        return all(clique.view.scheduled for clique in self._by_gang.get(gang, ()))

    def _fences(self, gang: Gang) -> tuple[str, ...]:
        """The confirmations that precede a change of the gang's membership. A stale count must not remove
        a pod; and pods that others deleted may have been deleted with their clique, which is not observed
        yet."""
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
        self, gang: Gang, body: objects.Body, placement: GangPlacement, deletes: DeletesByClique
    ) -> list[Intent]:
        pod_writes: list[Intent] = []
        creates = {
            clique.name: self._create_pods(self._cliques[clique.name], body, placement, deletes[clique.name])
            for clique in gang.cliques
        }
        for clique_state in self._by_gang.get(gang.name, ()):
            name = clique_state.wanted.name
            pod_writes += chain.from_iterable(deletes[name].values())
            pod_writes += self._adopt_pods(clique_state, deletes[name])
            # The first pods of a clique have no events: its status shows them better. It may exist for long
            # before its gang is begun.
            is_later = clique_state.found is not None and gang.name in self._snapshot.gangs
            later = creates.get(name, {}) if is_later else {}
            self._writes.events += pod_events(later, deletes[name], clique_state.unit)
        self.holds_pods |= any(self._holds_pods(clique, creates[clique.name]) for clique in gang.cliques)
        pod_writes += self._larger_first(gang, placement, creates)
        return pod_writes + self._nominations(gang, placement, creates)

    def _holds_pods(self, clique: Clique, creates: Mapping[int, Create]) -> bool:
        """Whether a pod of the clique is gated, or neither exists nor is created."""
        for member in self._cliques[clique.name].membership.members:
            if member.pod is not None:
                if pod_state.has_scheduling_gates(member.pod):
                    return True
            elif (created := creates.get(member.index)) is None or "schedulingGates" in created.body["spec"]:
                return True
        return False

    def _larger_first(
        self, gang: Gang, placement: GangPlacement, writes: Mapping[str, Mapping[int, Write]]
    ) -> Iterable[Write]:
        """Creates or gate removals by clique and index, in the order of their pods' sizes. Where the nodes
        are chosen already, nothing waits: the order then decides nothing."""
        batches = [
            [
                (write, index < clique.min_available and not self._was_refused(clique.name))
                for clique in same_size
                for index, write in writes[clique.name].items()
            ]
            for same_size in by_size(gang.cliques)
        ]
        if placement.scheduler_chooses:
            return one_after_another(batches)
        return (write for batch in batches for write, _ in batch)

    def _was_refused(self, clique: str) -> bool:
        """Whether writes of a clique's pods failed: other cliques then do not wait for them."""
        found = self._cliques[clique].found
        return found is not None and bool(found.status.last_errors)

    def _nominations(
        self, gang: Gang, placement: GangPlacement, creates: Mapping[str, Mapping[int, Create]]
    ) -> list[Patch]:
        """Nominations of gated pods to their nodes."""
        nominations: list[Patch | None] = []
        for clique in gang.cliques:
            for member in self._cliques[clique.name].membership.members:
                slot, created = PodSlot(clique.name, member.index), creates[clique.name].get(member.index)
                if created is not None:
                    nominations.append(placement.nominate_created(slot, created))
                else:
                    nominations.append(placement.nominate(slot, member))
        return [each for each in nominations if each is not None]

    def _create_pods(
        self, clique: CliqueState, gang: objects.Body, placement: GangPlacement, deletes: DeletesByIndex
    ) -> dict[int, Create]:
        """The creates of pods, by their index."""
        missing = clique.membership.missing
        if (
            not missing
            or placement.undecided
            or self._dependencies.blocked(clique.wanted)
            or waits_for_domain(clique.wanted)
            or (additions := self._additions(gang, clique.wanted.name)) is None
        ):
            return {}
        ready_to_create = [
            member
            for member in missing
            if not self._claims.lacks_claim(clique.wanted, member)
            and not (self._gates_hold_group and self._is_above_minimum(clique.wanted, member))
        ]
        workload, index, wanted = self._snapshot.workload, self._snapshot.index, clique.wanted
        object_labels = objects.clique_labels(workload, index, wanted)
        owners, after = self._owners(clique)
        waiting = {
            member.name: placement.gated(PodSlot(wanted.name, member.index))
            or self._is_above_minimum(wanted, member)
            for member in ready_to_create
        }
        specs: dict[tuple[bool, str], objects.Body] = {}

        def spec_of(member: Member) -> objects.Body:
            """Equal for all pods of the clique, but for their gates and the hosts that they are pinned to."""
            gated, slot = waiting[member.name], PodSlot(wanted.name, member.index)
            # Gated pods get their pins when they are released: a pin cannot be changed.
            node_labels = NO_NODE_LABELS if gated else placement.node_labels_of_pod(slot)
            key = gated, node_labels.required.get(HOSTNAME, "")
            if key not in specs:
                specs[key] = self._pod_spec(wanted, gated, node_labels)
            return specs[key]

        def create_pod(member: Member) -> Create:
            spec = with_claims(spec_of(member), self._claims.names_for(wanted, member))
            body = with_pod_additions(pod(workload, wanted, member, spec, object_labels, owners), additions)
            if not placement.applies:
                body = with_pod_additions(body, packing_affinity(wanted, body["spec"]))
            predecessors = _ids(deletes, member.index)
            first = (*after, *self._claims.writes_before_pod(wanted, member), *predecessors)
            return create(body, first, clique.ref)

        return {member.index: create_pod(member) for member in ready_to_create}

    def _additions(self, gang: objects.Body, clique: str) -> PodAdditions | None:
        """What the scheduler adds to new pods of a clique; None if there cannot be any."""
        name = gang["metadata"]["name"]
        if self.scheduler_objects.holds_pods(name):
            return None
        members = (member.pod for other in self._by_gang[name] for member in other.membership.members)
        return self.scheduler_objects.pod_additions(gang, clique, members)

    def _pod_spec(self, wanted: Clique, gated: bool, node_labels: NodeLabels) -> objects.Body:
        """The spec of pods of a clique."""
        workload, index = self._snapshot.workload, self._snapshot.index
        startup_parents = self._dependencies.parents_of(wanted)
        if startup_parents and wanted.gang in self._snapshot.gangs:
            self._writes.add(token_secret(workload))
        priority_class = self._snapshot.priority_class
        spec = pod_spec(workload, index, wanted, self._scheduler, gated, node_labels, priority_class)
        if startup_parents:
            spec = with_init_container(
                spec, workload.metadata.name, self._snapshot.init_image, startup_parents
            )
        return spec

    def _is_above_minimum(self, clique: Clique, member: Member) -> bool:
        """Whether a pod waits until every clique of its gang has its minimum: a scheduler that only counts
        the pods of a gang could otherwise place the surplus of one clique instead of another clique. It
        waits gated, or it is created later where a gated pod would hold its whole group."""
        if not self.scheduler_objects.minimum_first or member.index < clique.min_available:
            return False
        return not self._scheduled(clique.gang)

    def _adopt_pods(self, clique: CliqueState, deletes: DeletesByIndex) -> list[Patch]:
        """Restores the owner reference of orphaned pods."""
        patches: list[Patch] = []
        for member in clique.membership.members:
            if member.pod is not None and not pod_state.controller_uid(member.pod.metadata):
                owners, after = self._owners(clique)
                references = [*objects.to_builtins(member.pod.metadata.owner_references), *owners]
                after += _ids(deletes, member.index)
                patches.append(patch_pod_metadata(member.pod, {"ownerReferences": references}, after))
        return patches

    def _owners(self, clique: CliqueState) -> tuple[list[objects.Body], tuple[str, ...]]:
        """The owner references to a clique, and the id of its create if it is created in this plan."""
        created = self._repair.created(PodClique.KIND, clique.wanted.name)
        return objects.controller_reference(clique.ref), (created.id,) if created else ()

    def _gate_removals(self, gang: Gang, placement: GangPlacement, deletes: DeletesByClique) -> list[Patch]:
        if self.scheduler_objects.holds_gates(gang.name):
            return []
        gate_removals: dict[str, dict[int, Patch]] = {clique.name: {} for clique in gang.cliques}
        for clique in gang.cliques:
            for member in self._cliques[clique.name].membership.members:
                slot = PodSlot(clique.name, member.index)
                if member.pod is None or placement.gated(slot):
                    continue
                if self._gates_hold_group or not self._is_above_minimum(clique, member):
                    template, after = clique.template.spec.pod_spec, _ids(deletes[clique.name], member.index)
                    for patch in remove_gates([member.pod], template, placement.node_labels_of_pod(slot)):
                        gate_removals[clique.name][member.index] = replace(patch, after=after)
        return list(self._larger_first(gang, placement, gate_removals))


def _wait_reasons(gang: Gang, placement: GangPlacement) -> list[WaitReason]:
    found = [placement.reason] if placement.reason is not None else []
    if placement.waits_for_base:
        message = f"waits until PodGang {gang.base_gang} is scheduled"
        found.append(WaitReason(ReasonCode.BASE_GANG_NOT_SCHEDULED, message))
    return found


def _delete_pods(clique: CliqueState) -> DeletesByIndex:
    """The deletes of pods that are no longer members of a clique, by the index of the pod."""
    deletes: dict[int | None, list[Delete]] = {}
    for removed in clique.membership.to_delete:
        deletes.setdefault(pod_state.index_of(removed), []).append(delete_pod(removed, clique=clique.ref))
    return deletes


def _ids(deletes: DeletesByIndex, index: int) -> tuple[str, ...]:
    return tuple(delete.id for delete in deletes.get(index, ()))
