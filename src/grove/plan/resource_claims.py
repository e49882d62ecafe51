"""Plans the shared ResourceClaims of sets and replicas: created before the pods that refer to them, repaired,
and deleted with the part that they are for.

    owner -> claims -> a gang that is created -> pods
    counts confirmed, pods deleted -> claims of surplus indices -> their owner, if that is surplus too

The spec of a claim is never changed: Kubernetes forbids it. Claims that all replicas share are created by the
plan of the set; replicas wait until they exist. A claim that is deleted while pods use it is terminating
until these pods are gone; only then can it be created again, and new pods that need it wait until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from grove.api.intents import Create, Delete, ObjectRef, Patch
from grove.api.naming import labels
from grove.api.types.kind import Kind
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.claim_errors import CLAIMS_NOT_VISIBLE, claim_in_use_error, missing_template_error
from grove.plan.cliques.state import CliqueState
from grove.plan.desired import objects, shared_claims
from grove.plan.desired.expand import Clique, Gang, Group, ReplicaLayout
from grove.plan.desired.resource_sharing import has_shared_claims
from grove.plan.desired.shared_claims import API_VERSION, KIND, Body, SharedClaim
from grove.plan.members.membership import Member
from grove.plan.members.pod_state import controller_uid, terminating
from grove.plan.model import UserError
from grove.plan.ownership.repair import ObjectRepair
from grove.plan.snapshot import ClaimObjects, Snapshot
from grove.plan.writes.builders import (
    child_reference,
    confirm,
    create,
    delete_of_kind,
    delete_pod,
    target_of_kind,
)
from grove.plan.writes.collector import WriteCollector


def plan_set_claims(
    workload: PodCliqueSet, known: ClaimObjects
) -> tuple[tuple[Create | Patch, ...], tuple[UserError, ...]]:
    """Creates and repairs the claims that all replicas of a set share; `known` are those that the set owns,
    and orphans."""
    if not known.visible:
        return (), (CLAIMS_NOT_VISIBLE,)
    writes: list[Create | Patch] = []
    user_errors: dict[str, UserError] = {}
    for claim in shared_claims.set_claims(workload):
        owners = objects.set_owner_reference(workload)
        if (found := known.claims.get(claim.name)) is not None:
            if patch := _repair_patch(found, claim, owners):
                writes += _with_set_precondition(workload, patch)
        elif claim.name in known.terminating:
            continue
        elif body := _body(workload, claim, known, owners):
            writes.append(create(body))
        else:
            user_error = missing_template_error(workload, claim, known, None)
            user_errors[user_error.message] = user_error
    return tuple(writes), tuple(user_errors.values())


class ClaimPlanner:
    """Plans the claims of one replica, and decides which of them its pods can refer to."""

    def __init__(self, snapshot: Snapshot, repair: ObjectRepair, writes: WriteCollector) -> None:
        self._snapshot, self._repair, self._writes = snapshot, repair, writes
        self._workload, self._known = snapshot.workload, snapshot.shared
        self._has_shared_claims = has_shared_claims(snapshot.workload.spec.template)
        self._created: dict[str, str] = {}
        """The ids of the creates of claims, by the name of the claim."""
        self._wanted_names: set[str] = set()
        self._errors: dict[UserError, None] = {}

    def plan(self, layout: ReplicaLayout, cliques: Mapping[str, CliqueState]) -> None:
        """Creates missing claims and repairs changed ones."""
        if not self._has_shared_claims:
            return
        if not self._known.visible:
            self._add_error(CLAIMS_NOT_VISIBLE)
            return
        for claim in self._wanted(layout, cliques):
            self._wanted_names.add(claim.name)
            owner, after = self._owner(claim.owner)
            if (found := self._known.claims.get(claim.name)) is not None:
                if patch := _repair_patch(found, claim, self._owner_references(owner)):
                    self._writes.add(self._repair.after_confirming_set(patch))
            elif claim.name not in self._known.terminating and claim.name not in self._created:
                self._create(claim, owner, after)

    def _wanted(self, layout: ReplicaLayout, cliques: Mapping[str, CliqueState]) -> Iterator[SharedClaim]:
        yield from shared_claims.replica_claims(self._workload, self._snapshot.index)
        for group in layout.groups:
            yield from shared_claims.group_claims(self._workload, group)
        for clique in cliques.values():
            yield from shared_claims.clique_claims(self._workload, clique.wanted, _indices(clique))

    def _create(self, claim: SharedClaim, owner: ObjectRef | None, after: tuple[str, ...]) -> None:
        body = _body(self._workload, claim, self._known, self._owner_references(owner))
        if body is None:
            self._add_error(missing_template_error(self._workload, claim, self._known, owner))
        else:
            fences = self._fences(claim.owner)
            self._created[claim.name] = self._writes.add(create(body, (*after, *fences), owner))

    def _owner(self, owner: Clique | Group | None) -> tuple[ObjectRef | None, tuple[str, ...]]:
        """The clique or group that owns a claim, and the ids of the creates that must come before it."""
        if owner is None:
            return None, ()
        return self._repair.parent(_kind(owner), owner.name)

    def _owner_references(self, owner: ObjectRef | None) -> list[Body]:
        if owner is None:
            return objects.set_owner_reference(self._workload)
        return objects.controller_reference(owner)

    def _object(self, owner: Clique | Group) -> PodClique | PodCliqueScalingGroup:
        parts = self._snapshot.cliques if isinstance(owner, Clique) else self._snapshot.groups
        return parts[owner.name]

    def _fences(self, owner: Clique | Group | None) -> tuple[str, ...]:
        """Confirms the count that asks for a claim: the part may have been scaled in since (see
        `ownership.repair`)."""
        if owner is None:
            return self._repair.fences()
        if self._repair.created(_kind(owner), owner.name) is not None:
            return ()
        return (self._writes.confirm(self._object(owner)),)

    # Which claims pods need.

    def names_for(self, clique: Clique, member: Member) -> tuple[str, ...]:
        """The claims that a pod refers to."""
        if not self._has_shared_claims:
            return ()
        return shared_claims.claim_names_of_pod(self._workload, self._snapshot.index, clique, member.index)

    def lacks_claim(self, clique: Clique, member: Member) -> bool:
        """Whether a pod cannot be created yet because a claim is missing."""
        for name in self.names_for(clique, member):
            if name in self._known.claims or name in self._created:
                continue
            if name in self._known.terminating:
                regarding = child_reference(self._workload, PodClique.KIND, clique.name)
                self._add_error(claim_in_use_error(regarding, name))
            return True
        return False

    def writes_before_pod(self, clique: Clique, member: Member) -> tuple[str, ...]:
        """The ids of the writes that must precede the create of a pod."""
        return tuple(self._created[name] for name in self.names_for(clique, member) if name in self._created)

    def writes_before_gang(self, gang: Gang, cliques: Mapping[str, CliqueState]) -> tuple[str, ...]:
        """The ids of the writes that must precede the create of a gang: if a claim is rejected, the gang must
        not be created in part."""
        if not self._created:
            return ()
        pods = ((clique, member) for clique in gang.cliques for member in cliques[clique.name].members)
        return tuple(
            dict.fromkeys(
                write for clique, member in pods for write in self.writes_before_pod(clique, member)
            )
        )

    # Deletion.

    def delete_surplus(self, layout: ReplicaLayout, cliques: Mapping[str, CliqueState]) -> None:
        """Deletes claims of indices that no longer exist, in groups and cliques that stay. Called after the
        pods have been planned."""
        if not self._has_shared_claims:
            return
        for group in layout.groups:
            if (found := self._snapshot.groups.get(group.name)) is not None:
                self._delete_surplus_of(found, labels.GROUP, labels.GROUP_REPLICA)
        for clique in cliques.values():
            if clique.found is not None:
                self._delete_surplus_of(clique.found, labels.CLIQUE, labels.POD_INDEX)

    def _delete_surplus_of(
        self, owner: PodClique | PodCliqueScalingGroup, label: str, index_label: str
    ) -> None:
        pods_by_index: dict[str, list[Pod]] | None = None
        for claim in claims_of(self._known, label, owner.metadata.name):
            object_labels = claim.metadata.labels
            if claim.metadata.name in self._wanted_names or index_label not in object_labels:
                continue
            if pods_by_index is None:  # once for all claims: a clique may have thousands of both
                pods_by_index = self._pods_by_index(label, owner.metadata.name, index_label)
            pods = pods_by_index.get(object_labels[index_label], [])
            after = self._writes.planned_ids(delete_pod(pod).id for pod in pods)
            if len(after) < sum(not terminating(pod) for pod in pods):
                continue  # used until the garbage collector deletes the pods of a deleted PodClique
            self._writes.add(delete_claim(claim, (self._writes.confirm(owner), *after)))

    def _pods_by_index(self, label: str, owner: str, index_label: str) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self._snapshot.pods:
            if pod.metadata.labels.get(label) == owner:
                found.setdefault(pod.metadata.labels.get(index_label, ""), []).append(pod)
        return found

    def _add_error(self, user_error: UserError) -> None:
        self._errors[user_error] = None

    @property
    def errors(self) -> tuple[UserError, ...]:
        """Problems that only a user can solve."""
        return tuple(self._errors)


def claims_of(known: ClaimObjects, label: str, owner: str) -> Iterator[PartialObjectMetadata]:
    """The claims of a group or a clique."""
    return (claim for claim in known.claims.values() if claim.metadata.labels.get(label) == owner)


def claims_of_replica(known: ClaimObjects) -> Iterator[PartialObjectMetadata]:
    """The claims of a replica, without those that it shares with other replicas."""
    return (
        claim
        for claim in known.claims.values()
        if not labels.CLAIM_SCOPE_LABELS.isdisjoint(claim.metadata.labels)
    )


def delete_claim(found: PartialObjectMetadata, after: tuple[str, ...] = ()) -> Delete:
    return delete_of_kind(API_VERSION, KIND, found, after)


def _kind(owner: Clique | Group) -> Kind:
    return PodClique.KIND if isinstance(owner, Clique) else PodCliqueScalingGroup.KIND


def _indices(clique: CliqueState) -> Iterable[int]:
    """The indices below the replica count, and those of pods that stay with another index: their claim is in
    use."""
    members = (member.index for member in clique.members)
    return dict.fromkeys((*range(clique.wanted.replicas), *members))


def _body(workload: PodCliqueSet, claim: SharedClaim, known: ClaimObjects, owners: list[Body]) -> Body | None:
    spec = shared_claims.claim_spec(workload, claim.source, known)
    if spec is None:
        return None
    metadata = objects.metadata(workload, claim.name, claim.labels, {}, owners)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _repair_patch(found: PartialObjectMetadata, claim: SharedClaim, owners: list[Body]) -> Patch | None:
    """Restores our labels, and the owner of an orphan. Labels of others stay."""
    metadata: Body = {}
    object_labels = found.metadata.labels
    if changed := {key: value for key, value in claim.labels.items() if object_labels.get(key) != value}:
        metadata["labels"] = changed
    if not controller_uid(found.metadata):
        metadata["resourceVersion"] = found.metadata.resource_version
        metadata["ownerReferences"] = [*objects.to_builtins(found.metadata.owner_references), *owners]
    if not metadata:
        return None
    return Patch(
        target_of_kind(API_VERSION, KIND, found), {"metadata": {"uid": found.metadata.uid, **metadata}}
    )


def _with_set_precondition(workload: PodCliqueSet, patch: Patch) -> tuple[Patch, ...]:
    """An orphan is adopted only after the set is confirmed to exist (see `ownership.repair`)."""
    if "ownerReferences" not in patch.body["metadata"]:
        return (patch,)
    precondition = confirm(workload)
    return precondition, replace(patch, after=(precondition.id,))
