"""Creates missing parents and gangs of a replica, and repairs those that were edited.

Counts are never repaired: they belong to autoscalers and users. Everything else on an object is managed: an
edited label or spec is restored.

An object that is missing although it was created before was deleted by a user, or the count that asks for it
is stale and it was deleted by a scale-in. So that count is confirmed before anything is created again (see
`scale_in`). The first creation needs no confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.intents import Create, Intent, ObjectRef, Patch, uid_of
from grove.api.meta import ObjectMeta
from grove.api.types.kind import Kind
from grove.api.types.kubernetes_objects import Service
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.plan.desired import objects
from grove.plan.desired.expand import Clique, Gang, Group, ReplicaLayout
from grove.plan.desired.packing import pack
from grove.plan.desired.podspec import clique_annotations, clique_pod_spec, same_spec
from grove.plan.members.pod_state import controller_uid
from grove.plan.ownership.ownership import PodsByClique
from grove.plan.ownership.upstream_adoption import (
    has_legacy_finalizers,
    relabel_pods,
    without_legacy_finalizers,
)
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import child_reference, create, patch_if_unchanged, reference, target_of_kind
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.copied_annotations import only_copies_change
from grove.plan.writes.diff import merge_patch
from grove.topology.fallbacks import with_fallback

Body = dict[str, Any]


class ObjectRepair:
    """Compares the objects of one replica with their desired state."""

    def __init__(
        self, snapshot: Snapshot, layout: ReplicaLayout, pods_by_clique: PodsByClique, writes: WriteCollector
    ) -> None:
        self._snapshot, self._layout, self._pods_by_clique = snapshot, layout, pods_by_clique
        self._writes = writes
        self._workload, self._index = snapshot.workload, snapshot.index
        self._creates: dict[tuple[str, str], Create] = {}
        """Creates of groups and cliques in this plan, by kind and name: a group and a clique may have the
        same name."""

    def created(self, kind: Kind, name: str) -> Create | None:
        """The create of a group or a clique, if this plan creates it."""
        return self._creates.get((kind.name, name))

    def parent(self, kind: Kind, name: str) -> tuple[ObjectRef, tuple[str, ...]]:
        """A group or a clique. If this plan creates it, its UID is deferred, and the id of its create has to
        precede the writes of what it owns."""
        if created := self.created(kind, name):
            return child_reference(self._workload, kind, name, uid_of(created)), (created.id,)
        found = self._snapshot.cliques if kind is PodClique.KIND else self._snapshot.groups
        return reference(found[name]), ()

    def _create(self, kind: Kind, metadata: Body, spec: Body, after: tuple[str, ...]) -> Create:
        intent = create(objects.grove_object(kind, metadata, spec), after)
        self._creates[kind.name, metadata["name"]] = intent
        return intent

    def plan_parents(self) -> None:
        """Plans the Service, the groups and the cliques. Patches are added before confirmations: a patch
        confirms as well."""
        for group in self._layout.groups:
            self._add(self._group(group))
        self._add(self._service())
        for clique in self._layout.cliques:
            self._writes.add_all(self._clique(clique))

    def _add(self, intent: Intent | None) -> None:
        if intent is not None:
            self._writes.add(intent)

    def gang_body(
        self,
        wanted: Gang,
        scheduler: str,
        references: Mapping[str, tuple[str, ...]],
        annotations: Mapping[str, str] = MappingProxyType({}),
        attempt: int = 0,
    ) -> Body:
        """The desired PodGang with its pod references and annotations, and with the constraint of the set (0)
        or one of its fallbacks (1, ...)."""
        template = self._workload.spec.template
        template = with_fallback(template, attempt - 1) if attempt else template
        packing = pack(template, wanted, self._snapshot.topology_of(attempt))
        spec = objects.gang_spec(self._workload, wanted, references, packing, self._snapshot.priority_class)
        found = self._snapshot.gangs.get(wanted.name)
        known = found.metadata if found is not None else ObjectMeta()
        metadata = objects.gang_metadata(
            self._workload, self._index, wanted, scheduler, known, packing.topology
        )
        if annotations:
            metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
        return objects.grove_object(PodGang.KIND, metadata, spec)

    def plan_gang(self, wanted: Gang, body: Body, prompt_prefixes: tuple[str, ...]) -> Create | Patch | None:
        """The create or patch of a gang, after the creates of its cliques in this plan; None if it is up to
        date, except for copies of annotations that wait (see `copied_annotations`)."""
        found = self._snapshot.gangs.get(wanted.name)
        created_cliques = [self.created(PodClique.KIND, clique.name) for clique in wanted.cliques]
        after = tuple(create.id for create in created_cliques if create is not None)
        if found is None:
            fences = self.fences(next((clique.group for clique in wanted.cliques if wanted.base_gang), None))
            return create(body, (*after, *fences))
        spec = merge_patch(msgspec.to_builtins(found.spec), body["spec"])
        patch = object_patch(found.metadata, body["metadata"], spec)
        if not patch or only_copies_change(patch, self._workload.metadata.annotations, prompt_prefixes):
            return None
        return self.after_confirming_set(replace(patch_if_unchanged(found, patch), after=after))

    def _service(self) -> Create | Patch | None:
        metadata = objects.service_metadata(self._workload, self._index)
        managed_spec = objects.service_managed_spec(self._workload, self._index)
        found = self._snapshot.service
        if found is None:
            spec = {"clusterIP": "None", **managed_spec}
            body = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
            return create(body, self.fences())
        patch = object_patch(
            found.metadata, metadata, merge_patch(_service_managed_spec(found), managed_spec)
        )
        return (
            self.after_confirming_set(Patch(target_of_kind("v1", "Service", found), patch)) if patch else None
        )

    def _group(self, wanted: Group) -> Create | Patch | None:
        metadata = objects.group_metadata(self._workload, self._index, wanted)
        managed_spec = objects.group_managed_spec(wanted)
        found = self._snapshot.groups.get(wanted.name)
        if found is not None:
            patch = _guarded_patch(found, metadata, merge_patch(_group_managed_spec(found), managed_spec))
            return self.after_confirming_set(patch) if patch is not None else None
        spec = {"replicas": wanted.replicas, **managed_spec}
        return self._create(PodCliqueScalingGroup.KIND, metadata, spec, self.fences())

    def _clique(self, wanted: Clique) -> list[Intent]:
        owners, after = self._owners(wanted)
        object_labels = objects.clique_labels(self._workload, self._index, wanted)
        annotations = clique_annotations(wanted)
        metadata = objects.metadata(self._workload, wanted.name, object_labels, annotations, owners)
        managed_spec = objects.clique_managed_spec(self._workload, self._index, self._layout, wanted)
        found = self._snapshot.cliques.get(wanted.name)
        if found is not None:
            return self._repair_patch(found, wanted, metadata, managed_spec)
        pods = {"podSpec": clique_pod_spec(self._workload, wanted), "replicas": wanted.replicas}
        after = (*after, *self.fences(wanted.group))
        return [self._create(PodClique.KIND, metadata, pods | managed_spec, after)]

    def _repair_patch(
        self, found: PodClique, wanted: Clique, metadata: Body, managed_spec: Body
    ) -> list[Intent]:
        spec = merge_patch(_clique_managed_spec(found), managed_spec)
        same_pods = same_spec(found.spec.pod_spec, self._workload, wanted)
        if not same_pods:
            written = objects.to_builtins(found.spec.pod_spec)
            spec["podSpec"] = merge_patch(written, clique_pod_spec(self._workload, wanted))
        patch = _guarded_patch(found, metadata, spec)
        if patch is None:
            return []
        pods = self._pods_by_clique.of(wanted.name, found.metadata.uid) if same_pods else ()
        first = relabel_pods(found, pods, wanted)
        return [*first, self.after_confirming_set(replace(patch, after=tuple(intent.id for intent in first)))]

    def after_confirming_set(self, patch: Patch) -> Patch:
        """Confirms the set before an object is adopted. The object may be an orphan because this set was
        deleted, which is not observed yet: with a deleted set as owner it would be garbage collected."""
        if "ownerReferences" not in patch.body.get("metadata", {}):
            return patch
        return replace(patch, after=(*patch.after, self._writes.confirm(self._workload)))

    def fences(self, group: Group | None = None) -> tuple[str, ...]:
        """Confirms the counts that ask for a missing object, in a group or outside; none if it was never
        created before."""
        found = self._snapshot.groups.get(group.name) if group is not None else None
        if found is not None:
            created_before = found.status.observed_generation >= found.metadata.generation
            return (
                (self._writes.confirm(found), self._writes.confirm(self._workload)) if created_before else ()
            )
        return (self._writes.confirm(self._workload),) if _was_created_before(self._snapshot) else ()

    def _owners(self, wanted: Clique) -> tuple[list[Body], tuple[str, ...]]:
        """The owner references of a clique, and the ids of the creates that must come before it."""
        if wanted.group is None:
            return objects.set_owner_reference(self._workload), ()
        group, after = self.parent(PodCliqueScalingGroup.KIND, wanted.group.name)
        return objects.controller_reference(group), after


def _was_created_before(snapshot: Snapshot) -> bool:
    """Whether the replica was complete once, or any object of it exists."""
    workload = snapshot.workload
    if workload.status.observed_generation >= workload.metadata.generation:
        return True
    parts = (snapshot.service, snapshot.groups, snapshot.cliques, snapshot.gangs, snapshot.pods)
    return any(parts)


def _guarded_patch(found: PodClique | PodCliqueScalingGroup, metadata: Body, spec: Body) -> Patch | None:
    patch = object_patch(found.metadata, metadata, spec)
    return patch_if_unchanged(found, patch) if patch else None


def object_patch(found: ObjectMeta, wanted: Body, spec: Body) -> Body:
    """The patch to the desired labels, annotations and spec, with an owner for an orphan and without
    upstream's finalizers."""
    metadata: Body = {}
    if changed := merge_patch(found.labels, wanted["labels"]):
        metadata["labels"] = changed
    if changed := merge_patch(found.annotations, wanted.get("annotations", {})):
        metadata["annotations"] = changed
    if not controller_uid(found):
        metadata["ownerReferences"] = [
            *objects.to_builtins(found.owner_references),
            *wanted["ownerReferences"],
        ]
    if has_legacy_finalizers(found):
        metadata["finalizers"] = without_legacy_finalizers(found.finalizers)
    parts = {"metadata": metadata, "spec": spec}
    return {name: part for name, part in parts.items() if part}


def _service_managed_spec(found: Service) -> Body:
    return {
        "selector": found.spec.selector,
        "publishNotReadyAddresses": found.spec.publish_not_ready_addresses,
    }


def _group_managed_spec(found: PodCliqueScalingGroup) -> Body:
    return {"minAvailable": found.spec.min_available, "cliqueNames": list(found.spec.clique_names)}


def _clique_managed_spec(found: PodClique) -> Body:
    spec = found.spec
    managed_spec: Body = {"roleName": spec.role_name, "minAvailable": spec.min_available}
    if spec.starts_after:
        managed_spec["startsAfter"] = list(spec.starts_after)
    if spec.auto_scaling_config is not None:
        managed_spec["autoScalingConfig"] = objects.to_builtins(spec.auto_scaling_config)
    return managed_spec
