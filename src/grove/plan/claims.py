"""Shared claims: made before the pods that refer to them, mended, and gone with what they are for.

    owner -> claims -> a gang that begins -> pods
    counts confirmed, pods deleted -> claims of an index that nobody has -> their owner, if that goes too

A claim's spec is never touched: Kubernetes forbids it. What all replicas share is made by the set's own plan;
the replicas wait until it is there. A claim that is deleted while pods use it stays until they are gone; only
then can it be made again, and whoever needs it until then waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from grove.api import labels
from grove.api.annotations import SHARED_WITH_NAMESPACES
from grove.api.cliques import PodClique
from grove.api.cluster import Bare
from grove.api.errors import ErrorCode
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Create, Delete, Patch, uid_of
from grove.api.kind import Kind
from grove.api.parts import ResourceSharing
from grove.api.sets import PodCliqueSet
from grove.plan import compose, sharing
from grove.plan.enrolment import Enrolled
from grove.plan.expand import Clique, Gang, Group, Shape
from grove.plan.ledger import Member
from grove.plan.mend import Mender
from grove.plan.model import Complaint
from grove.plan.pods import controller_uid, terminating
from grove.plan.sharing import API_VERSION, KIND, Body, Claim, Shared
from grove.plan.snapshot import Snapshot
from grove.plan.targets import confirm, create, delete_pod, foreign_target
from grove.plan.writes import Writes

UNSEEN = (
    "cannot see resourceclaims.resource.k8s.io: does the cluster serve resource.k8s.io/v1, and may the "
    "operator list and watch resourceclaims and resourceclaimtemplates?"
)


def plan_whole_set(
    workload: PodCliqueSet, known: Shared
) -> tuple[tuple[Create | Patch, ...], tuple[Complaint, ...]]:
    """Make and mend what all replicas of a set share; `known` is what is ours of it, or nobody's."""
    if not known.visible:
        return (), (Complaint("", ErrorCode.SYNC_SET_CLAIM, UNSEEN),)
    writes: list[Create | Patch] = []
    complaints: dict[str, Complaint] = {}
    for claim in sharing.of_whole_set(workload):
        owners = compose.owned_by_set(workload)
        if (found := known.claims.get(claim.name)) is not None:
            if patch := _mended(found, claim, owners):
                writes += _witnessed(workload, patch)
        elif claim.name in known.leaving:
            continue
        elif body := _body(workload, claim, known, owners):
            writes.append(create(body))
        else:
            complaint = _no_template(workload, claim, known)
            complaints[complaint.words] = complaint
    return tuple(writes), tuple(complaints.values())


class Claims:
    """Plans the claims of one replica, and knows which of them its pods can refer to."""

    def __init__(self, snapshot: Snapshot, mender: Mender, writes: Writes) -> None:
        self._snapshot, self._mender, self._writes = snapshot, mender, writes
        self._workload, self._known = snapshot.workload, snapshot.shared
        self._shares = sharing.shares(snapshot.workload.spec.template)
        self._made: dict[str, str] = {}
        """The writes that make claims, by the name of the claim."""
        self._wanted_names: set[str] = set()
        self._complaints: dict[tuple[str, str], Complaint] = {}

    def plan(self, shape: Shape, cliques: Mapping[str, Enrolled]) -> None:
        """Make what is missing and mend what is wrong."""
        if not self._shares:
            return
        if not self._known.visible:
            self._complain(Complaint("", ErrorCode.SYNC_SET_CLAIM, UNSEEN))
            return
        for claim in self._wanted(shape, cliques):
            self._wanted_names.add(claim.name)
            owners, after = self._owners(claim.owner)
            if (found := self._known.claims.get(claim.name)) is not None:
                if patch := _mended(found, claim, owners):
                    self._writes.add(self._mender.witnessed(patch))
            elif claim.name not in self._known.leaving and claim.name not in self._made:
                self._make(claim, owners, after)

    def _wanted(self, shape: Shape, cliques: Mapping[str, Enrolled]) -> Iterator[Claim]:
        yield from sharing.of_replica(self._workload, self._snapshot.index)
        for group in shape.groups:
            yield from sharing.of_group(self._workload, group)
        for clique in cliques.values():
            yield from sharing.of_clique(self._workload, clique.wanted, _indices(clique))

    def _make(self, claim: Claim, owners: list[Body], after: tuple[str, ...]) -> None:
        body = _body(self._workload, claim, self._known, owners)
        if body is None:
            self._complain(_no_template(self._workload, claim, self._known))
        else:
            fences = self._fences(claim.owner)
            self._made[claim.name] = self._writes.add(create(body, (*after, *fences)))

    def _owners(self, owner: Clique | Group | None) -> tuple[list[Body], tuple[str, ...]]:
        """Whom a claim belongs to, and what must be made before."""
        if owner is None:
            return compose.owned_by_set(self._workload), ()
        kind = _kind(owner)
        if made := self._mender.made(kind, owner.name):
            return compose.owner(kind.api_version, kind.name, owner.name, uid_of(made)), (made.id,)
        uid = self._object(owner).metadata.uid
        return compose.owner(kind.api_version, kind.name, owner.name, uid), ()

    def _object(self, owner: Clique | Group) -> PodClique | PodCliqueScalingGroup:
        parts = self._snapshot.cliques if isinstance(owner, Clique) else self._snapshot.groups
        return parts[owner.name]

    def _fences(self, owner: Clique | Group | None) -> tuple[str, ...]:
        """Confirms the count that asks for a claim: it may have been scaled away (see `mend`)."""
        if owner is None:
            return self._mender.fences()
        if self._mender.made(_kind(owner), owner.name) is not None:
            return ()
        return (self._writes.confirm(self._object(owner)),)

    # What pods ask.

    def of(self, clique: Clique, member: Member) -> tuple[str, ...]:
        """The claims that a pod refers to."""
        if not self._shares:
            return ()
        return sharing.referred(self._workload, self._snapshot.index, clique, member.index)

    def lacks(self, clique: Clique, member: Member) -> bool:
        """Whether a pod cannot be made yet, for want of a claim."""
        for name in self.of(clique, member):
            if name in self._known.claims or name in self._made:
                continue
            if name in self._known.leaving:
                self._complain(_in_use(clique, name))
            return True
        return False

    def before(self, clique: Clique, member: Member) -> tuple[str, ...]:
        """What must be written before a pod is made."""
        return tuple(self._made[name] for name in self.of(clique, member) if name in self._made)

    def before_gang(self, gang: Gang, cliques: Mapping[str, Enrolled]) -> tuple[str, ...]:
        """What must be written before a gang begins: a claim that is refused must not leave it half begun."""
        if not self._made:
            return ()
        everybody = ((clique, member) for clique in gang.cliques for member in cliques[clique.name].members)
        return tuple(
            dict.fromkeys(write for clique, member in everybody for write in self.before(clique, member))
        )

    # What goes.

    def retire(self, shape: Shape, cliques: Mapping[str, Enrolled]) -> None:
        """Claims of an index that nobody has, in groups and cliques that stay. The pods have been planned."""
        if not self._shares:
            return
        for group in shape.groups:
            if (found := self._snapshot.groups.get(group.name)) is not None:
                self._drop_surplus(found, labels.GROUP, labels.GROUP_REPLICA)
        for clique in cliques.values():
            if clique.found is not None:
                self._drop_surplus(clique.found, labels.CLIQUE, labels.POD_INDEX)

    def _drop_surplus(self, owner: PodClique | PodCliqueScalingGroup, label: str, index_label: str) -> None:
        for claim in claims_of(self._known, label, owner.metadata.name):
            carried = claim.metadata.labels
            if claim.metadata.name in self._wanted_names or index_label not in carried:
                continue
            place = {key: carried[key] for key in (label, index_label)}
            pods = [pod for pod in self._snapshot.pods if place.items() <= pod.metadata.labels.items()]
            after = self._writes.planned(delete_pod(pod).id for pod in pods)
            if len(after) < sum(not terminating(pod) for pod in pods):
                continue  # a pod of a deleted PodClique is left to the garbage collector, and still uses it
            self._writes.add(delete_claim(claim, (self._writes.confirm(owner), *after)))

    def _complain(self, complaint: Complaint) -> None:
        self._complaints[(complaint.clique or complaint.group, complaint.words)] = complaint

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """What only a person can mend."""
        return tuple(self._complaints.values())


def claims_of(known: Shared, label: str, owner: str) -> Iterator[Bare]:
    """The claims of a group or a clique."""
    return (claim for claim in known.claims.values() if claim.metadata.labels.get(label) == owner)


def claims_of_replica(known: Shared) -> Iterator[Bare]:
    """All that is there of a replica's claims: not what it shares with others."""
    return (
        claim for claim in known.claims.values() if not labels.CLAIM_PLACES.isdisjoint(claim.metadata.labels)
    )


def delete_claim(found: Bare, after: tuple[str, ...] = ()) -> Delete:
    return Delete(foreign_target(API_VERSION, KIND, found), uid=found.metadata.uid, after=after)


def _kind(owner: Clique | Group) -> Kind:
    return PodClique.KIND if isinstance(owner, Clique) else PodCliqueScalingGroup.KIND


def _indices(clique: Enrolled) -> Iterable[int]:
    """As many as there are replicas, and those of pods that stay with another index: theirs is in use."""
    members = (member.index for member in clique.members)
    return dict.fromkeys((*range(clique.wanted.replicas), *members))


def _body(workload: PodCliqueSet, claim: Claim, known: Shared, owners: list[Body]) -> Body | None:
    spec = sharing.claim_spec(workload, claim.source, known)
    if spec is None:
        return None
    metadata = compose.metadata(workload, claim.name, claim.labels, {}, owners)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _mended(found: Bare, claim: Claim, owners: list[Body]) -> Patch | None:
    """Our labels, and an owner on what has none. Labels of others stay."""
    metadata: Body = {}
    carried = found.metadata.labels
    if lost := {key: value for key, value in claim.labels.items() if carried.get(key) != value}:
        metadata["labels"] = lost
    if not controller_uid(found.metadata):
        metadata["resourceVersion"] = found.metadata.resource_version
        metadata["ownerReferences"] = [*compose.plain(found.metadata.owner_references), *owners]
    if not metadata:
        return None
    return Patch(
        foreign_target(API_VERSION, KIND, found), {"metadata": {"uid": found.metadata.uid, **metadata}}
    )


def _witnessed(workload: PodCliqueSet, patch: Patch) -> tuple[Patch, ...]:
    """What nobody owns is taken back only by a set that is known to be there (see `mend`)."""
    if "ownerReferences" not in patch.body["metadata"]:
        return (patch,)
    witness = confirm(workload)
    return witness, replace(patch, after=(witness.id,))


def _no_template(workload: PodCliqueSet, claim: Claim, known: Shared) -> Complaint:
    """The same words for every replica: one trouble is told once."""
    owner = claim.owner
    words = _no_template_words(
        workload, claim.source, "the set" if owner is None else owner.template.name, known
    )
    if isinstance(owner, Group):
        return Complaint("", claim.code, words, group=owner.name)
    return Complaint(owner.name if owner is not None else "", claim.code, words)


def _no_template_words(workload: PodCliqueSet, source: ResourceSharing, part: str, known: Shared) -> str:
    """Of a template in another namespace it is not disclosed whether it exists."""
    own = workload.metadata.namespace
    template = f"ResourceClaimTemplate {source.namespace or own}/{source.name}"
    referred = f"which resourceSharing of {part} refers to"
    if sharing.crosses_namespaces(workload, source):
        remedy = f"create it, or add {own} to its annotation {SHARED_WITH_NAMESPACES}"
        return f"{template}, {referred}, does not exist or is not shared with namespace {own}: {remedy}"
    if reason := known.undecodable.get((own, source.name)):
        return f"cannot decode {template}, {referred} ({reason}): replace it"
    return f"there is no {template}, {referred}: create it"


def _in_use(clique: Clique, name: str) -> Complaint:
    words = (
        f"pods wait for ResourceClaim {name}, which was deleted while others use it: it is made again when "
        "the pods that use it are gone"
    )
    return Complaint(clique.name, ErrorCode.SYNC_CLIQUE_CLAIM, words)
