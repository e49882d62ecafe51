"""Parents and gangs of a replica: made where they are missing, mended where they are not as they should be.

Counts are never mended: they belong to whoever scales. Everything else on an object is ours to set: a label
or a spec that somebody changed by hand is set right again.

What is missing although it has been made before was deleted by hand, or our view of the count that asks for
it is old and it was scaled away. So that count is confirmed before anything is made again (see `retire`).
What is made for the first time needs no such question.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.cliques import PodClique
from grove.api.cluster import Service
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Create, Intent, Patch, uid_of
from grove.api.kind import Kind
from grove.api.meta import ObjectMeta
from grove.plan import compose
from grove.plan.diff import merge_patch
from grove.plan.expand import Clique, Gang, Group, Shape
from grove.plan.ours import Households
from grove.plan.packing import pack
from grove.plan.pods import controller_uid
from grove.plan.podspec import clique_annotations, clique_pod_spec, same_spec
from grove.plan.snapshot import Snapshot
from grove.plan.takeover import is_burdened, relabelled, without_legacy
from grove.plan.targets import change, create, foreign_target
from grove.plan.writes import Writes

Body = dict[str, Any]


class Mender:
    """Compares the objects of one replica with what they should be."""

    def __init__(self, snapshot: Snapshot, shape: Shape, households: Households, writes: Writes) -> None:
        self._snapshot, self._shape, self._households = snapshot, shape, households
        self._writes = writes
        self._workload, self._index = snapshot.workload, snapshot.index
        self._creates: dict[tuple[str, str], Create] = {}
        """Groups and cliques that are made in this plan, by kind and name: one of each may have one name."""

    def made(self, kind: Kind, name: str) -> Create | None:
        """The write that makes a group or a clique, if it is made in this plan."""
        return self._creates.get((kind.name, name))

    def _make(self, kind: Kind, metadata: Body, spec: Body, after: tuple[str, ...]) -> Create:
        made = create(compose.thing(kind, metadata, spec), after)
        self._creates[kind.name, metadata["name"]] = made
        return made

    def parents(self) -> None:
        """Plan the Service, the groups and the cliques. What is changed comes before what is confirmed: a
        change confirms as well."""
        for group in self._shape.groups:
            self._plan(self._group(group))
        self._plan(self._service())
        for clique in self._shape.cliques:
            self._writes.add_all(self._clique(clique))

    def _plan(self, intent: Intent | None) -> None:
        if intent is not None:
            self._writes.add(intent)

    def gang_body(
        self,
        wanted: Gang,
        scheduler: str,
        references: Mapping[str, tuple[str, ...]],
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> Body:
        """The gang with its pods and what it is to remember, as it should be."""
        packing = pack(self._workload, wanted, self._snapshot.topology)
        spec = compose.gang_spec(self._workload, wanted, references, packing)
        found = self._snapshot.gangs.get(wanted.name)
        known = found.metadata if found is not None else ObjectMeta()
        metadata = compose.gang_metadata(
            self._workload, self._index, wanted, scheduler, known, packing.topology
        )
        if notes:
            metadata["annotations"] = {**metadata.get("annotations", {}), **notes}
        return compose.thing(PodGang.KIND, metadata, spec)

    def gang(self, wanted: Gang, body: Body) -> Create | Patch | None:
        """What makes it so. It comes after the cliques that are made in this plan."""
        found = self._snapshot.gangs.get(wanted.name)
        made = [self.made(PodClique.KIND, clique.name) for clique in wanted.cliques]
        after = tuple(create.id for create in made if create is not None)
        if found is None:
            fences = self.fences(next((clique.group for clique in wanted.cliques if wanted.base_gang), None))
            return create(body, (*after, *fences))
        spec = merge_patch(msgspec.to_builtins(found.spec), body["spec"])
        patch = _changes(found, body["metadata"], spec)
        return self.witnessed(replace(patch, after=after)) if patch is not None else None

    def _service(self) -> Create | Patch | None:
        metadata = compose.service_metadata(self._workload, self._index)
        terms = compose.service_terms(self._workload, self._index)
        found = self._snapshot.service
        if found is None:
            spec = {"clusterIP": "None", **terms}
            body = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
            return create(body, self.fences())
        patch = differences(found.metadata, metadata, merge_patch(_service_terms(found), terms))
        return self.witnessed(Patch(foreign_target("v1", "Service", found), patch)) if patch else None

    def _group(self, wanted: Group) -> Create | Patch | None:
        metadata = compose.group_metadata(self._workload, self._index, wanted)
        terms = compose.group_terms(wanted)
        found = self._snapshot.groups.get(wanted.name)
        if found is not None:
            patch = _changes(found, metadata, merge_patch(_group_terms(found), terms))
            return self.witnessed(patch) if patch is not None else None
        spec = {"replicas": wanted.replicas, **terms}
        return self._make(PodCliqueScalingGroup.KIND, metadata, spec, self.fences())

    def _clique(self, wanted: Clique) -> list[Intent]:
        owners, after = self._owners(wanted)
        carried = compose.clique_labels(self._workload, self._index, wanted)
        notes = clique_annotations(wanted)
        metadata = compose.metadata(self._workload, wanted.name, carried, notes, owners)
        terms = compose.clique_terms(self._workload, self._index, self._shape, wanted)
        found = self._snapshot.cliques.get(wanted.name)
        if found is not None:
            return self._mended(found, wanted, metadata, terms)
        pods = {"podSpec": clique_pod_spec(self._workload, wanted), "replicas": wanted.replicas}
        after = (*after, *self.fences(wanted.group))
        return [self._make(PodClique.KIND, metadata, pods | terms, after)]

    def _mended(self, found: PodClique, wanted: Clique, metadata: Body, terms: Body) -> list[Intent]:
        spec = merge_patch(_clique_terms(found), terms)
        same_pods = same_spec(found.spec.pod_spec, self._workload, wanted)
        if not same_pods:
            written = compose.plain(found.spec.pod_spec)
            spec["podSpec"] = merge_patch(written, clique_pod_spec(self._workload, wanted))
        patch = _changes(found, metadata, spec)
        if patch is None:
            return []
        pods = self._households.of(wanted.name, found.metadata.uid) if same_pods else ()
        first = relabelled(found, pods, wanted)
        return [*first, self.witnessed(replace(patch, after=tuple(intent.id for intent in first)))]

    def witnessed(self, patch: Patch) -> Patch:
        """What nobody owns may have been orphaned by the end of this set, which we have not seen: to be taken
        back by a set that is gone is to be collected as garbage. So the set is confirmed first."""
        if "ownerReferences" not in patch.body.get("metadata", {}):
            return patch
        return replace(patch, after=(*patch.after, self._writes.confirm(self._workload)))

    def fences(self, group: Group | None = None) -> tuple[str, ...]:
        """Confirms the counts that ask for a part, of a group or of none, which is missing; nothing if it has
        not been made before."""
        found = self._snapshot.groups.get(group.name) if group is not None else None
        if found is not None:
            made_before = found.status.observed_generation >= found.metadata.generation
            return (self._writes.confirm(found), self._writes.confirm(self._workload)) if made_before else ()
        return (self._writes.confirm(self._workload),) if _made_before(self._snapshot) else ()

    def _owners(self, wanted: Clique) -> tuple[list[Body], tuple[str, ...]]:
        """Who a clique belongs to, and what must be made before it."""
        if wanted.group is None:
            return compose.owned_by_set(self._workload), ()
        kind, name = PodCliqueScalingGroup.KIND, wanted.group.name
        if made := self.made(kind, name):
            return compose.owner(kind.api_version, kind.name, name, uid_of(made)), (made.id,)
        uid = self._snapshot.groups[name].metadata.uid
        return compose.owner(kind.api_version, kind.name, name, uid), ()


def _made_before(snapshot: Snapshot) -> bool:
    """Whether the replica was complete once, or any of it is there."""
    workload = snapshot.workload
    if workload.status.observed_generation >= workload.metadata.generation:
        return True
    parts = (snapshot.service, snapshot.groups, snapshot.cliques, snapshot.gangs, snapshot.pods)
    return any(parts)


def _changes(found: PodClique | PodCliqueScalingGroup | PodGang, metadata: Body, spec: Body) -> Patch | None:
    patch = differences(found.metadata, metadata, spec)
    return change(found, patch) if patch else None


def differences(found: ObjectMeta, wanted: Body, spec: Body) -> Body:
    """Labels and annotations as they should be, an owner on what has none, no finalizers of upstream's."""
    metadata: Body = {}
    if changed := merge_patch(found.labels, wanted["labels"]):
        metadata["labels"] = changed
    if changed := merge_patch(found.annotations, wanted.get("annotations", {})):
        metadata["annotations"] = changed
    if not controller_uid(found):
        metadata["ownerReferences"] = [*compose.plain(found.owner_references), *wanted["ownerReferences"]]
    if is_burdened(found):
        metadata["finalizers"] = without_legacy(found.finalizers)
    parts = {"metadata": metadata, "spec": spec}
    return {name: part for name, part in parts.items() if part}


def _service_terms(found: Service) -> Body:
    return {
        "selector": found.spec.selector,
        "publishNotReadyAddresses": found.spec.publish_not_ready_addresses,
    }


def _group_terms(found: PodCliqueScalingGroup) -> Body:
    return {"minAvailable": found.spec.min_available, "cliqueNames": list(found.spec.clique_names)}


def _clique_terms(found: PodClique) -> Body:
    spec = found.spec
    terms: Body = {"roleName": spec.role_name, "minAvailable": spec.min_available}
    if spec.starts_after:
        terms["startsAfter"] = list(spec.starts_after)
    if spec.auto_scaling_config is not None:
        terms["autoScalingConfig"] = compose.plain(spec.auto_scaling_config)
    return terms
