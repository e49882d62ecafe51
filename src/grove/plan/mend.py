"""Parents and gangs of a replica: made where they are missing, mended where they are not as they should be.

Counts are never mended: they belong to whoever scales. Everything else on an object is ours to set: a label
or a spec that somebody changed by hand is set right again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.cluster import Service
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Create, Intent, Patch, uid_of
from grove.api.meta import ObjectMeta
from grove.plan import compose
from grove.plan.diff import merge_patch
from grove.plan.expand import Clique, Gang, Group, Shape
from grove.plan.ours import Households
from grove.plan.pods import controller_uid
from grove.plan.podspec import same_spec
from grove.plan.snapshot import Snapshot
from grove.plan.takeover import is_burdened, relabelled, without_legacy
from grove.plan.targets import change, create, foreign_target

Body = dict[str, Any]


class Mender:
    """Compares the objects of one replica with what they should be."""

    def __init__(self, snapshot: Snapshot, shape: Shape, households: Households) -> None:
        self._snapshot, self._shape, self._households = snapshot, shape, households
        self._workload, self._index = snapshot.workload, snapshot.index
        self.creates: dict[str, Create] = {}
        """Groups and cliques that are made in this plan, by name."""

    def parents(self) -> list[Intent]:
        """The Service, the groups and the cliques."""
        parents = [self._service(), *map(self._group, self._shape.groups)]
        intents: list[Intent] = [intent for intent in parents if intent is not None]
        for clique in self._shape.cliques:
            intents += self._clique(clique)
        return intents

    def gang(
        self, wanted: Gang, scheduler: str, references: Mapping[str, tuple[str, ...]]
    ) -> Create | Patch | None:
        """The gang with its pods. It comes after the cliques that are made in this plan."""
        spec = compose.gang_spec(self._workload, wanted, references)
        found = self._snapshot.gangs.get(wanted.name)
        after = tuple(
            self.creates[clique.name].id for clique in wanted.cliques if clique.name in self.creates
        )
        if found is None:
            return create(compose.gang(self._workload, self._index, wanted, scheduler, spec), after)
        metadata = {
            "labels": compose.gang_labels(self._workload, self._index, scheduler, found.metadata.labels),
            "annotations": compose.gang_annotations(self._workload, found.metadata.annotations),
            "ownerReferences": compose.owned_by_set(self._workload),
        }
        patch = self._changes(found, metadata, merge_patch(_gang_spec(found), spec))
        if patch is None or not after:
            return patch
        return Patch(patch.target, patch.body, after=after)

    def _service(self) -> Create | Patch | None:
        body = compose.service(self._workload, self._index)
        found = self._snapshot.service
        if found is None:
            return create(body)
        patch = _metadata_changes(found.metadata, body["metadata"])
        if spec := merge_patch(
            _service_spec(found), {k: v for k, v in body["spec"].items() if k != "clusterIP"}
        ):
            patch["spec"] = spec
        return Patch(foreign_target("v1", "Service", found), patch) if patch else None

    def _group(self, wanted: Group) -> Create | Patch | None:
        body = compose.group(self._workload, self._index, wanted)
        found = self._snapshot.groups.get(wanted.name)
        if found is None:
            self.creates[wanted.name] = create(body)
            return self.creates[wanted.name]
        current = {"minAvailable": found.spec.min_available, "cliqueNames": list(found.spec.clique_names)}
        return self._changes(found, body["metadata"], _but_replicas(current, body["spec"]))

    def _clique(self, wanted: Clique) -> list[Intent]:
        found = self._snapshot.cliques.get(wanted.name)
        owners, after = self._owners(wanted)
        body = compose.clique(self._workload, self._index, self._shape, wanted, owners)
        if found is None:
            self.creates[wanted.name] = create(body, after)
            return [self.creates[wanted.name]]
        same_pods = same_spec(found.spec.pod_spec, self._workload, wanted)
        current = _clique_spec(found, with_pods=not same_pods)
        if same_pods:
            del body["spec"]["podSpec"]
        patch = self._changes(found, body["metadata"], _but_replicas(current, body["spec"]))
        if patch is None:
            return []
        first = self._relabelled(found, wanted, body["metadata"]["labels"]) if same_pods else []
        return [*first, replace(patch, after=tuple(pod.id for pod in first))]

    def _relabelled(self, found: PodClique, wanted: Clique, ours: labels.Labels) -> list[Intent]:
        pods = self._households.of(wanted.name, found.metadata.uid)
        return relabelled(found, pods, wanted.template.name, ours[labels.TEMPLATE_HASH])

    def _owners(self, wanted: Clique) -> tuple[list[Body], tuple[str, ...]]:
        """Who a clique belongs to, and what must be made before it."""
        if wanted.group is None:
            return compose.owned_by_set(self._workload), ()
        kind, name = PodCliqueScalingGroup.KIND, wanted.group.name
        if made := self.creates.get(name):
            return compose.owner(kind.api_version, kind.name, name, uid_of(made)), (made.id,)
        uid = self._snapshot.groups[name].metadata.uid
        return compose.owner(kind.api_version, kind.name, name, uid), ()

    def _changes(
        self, found: PodClique | PodCliqueScalingGroup | PodGang, metadata: Body, spec: Body
    ) -> Patch | None:
        patch = _metadata_changes(found.metadata, metadata)
        if spec:
            patch["spec"] = spec
        return change(found, patch) if patch else None


def _metadata_changes(found: ObjectMeta, wanted: Body) -> Body:
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
    return {"metadata": metadata} if metadata else {}


def _but_replicas(current: Body, wanted: Body) -> Body:
    return merge_patch(current, {key: value for key, value in wanted.items() if key != "replicas"})


def _clique_spec(found: PodClique, *, with_pods: bool) -> Body:
    spec = found.spec
    current: Body = {"roleName": spec.role_name, "minAvailable": spec.min_available}
    if with_pods:
        current["podSpec"] = compose.plain(spec.pod_spec)
    if spec.starts_after:
        current["startsAfter"] = list(spec.starts_after)
    if spec.auto_scaling_config is not None:
        current["autoScalingConfig"] = compose.plain(spec.auto_scaling_config)
    return current


def _gang_spec(found: PodGang) -> Body:
    current: Body = compose.plain(found.spec)
    return current


def _service_spec(found: Service) -> Body:
    return {
        "selector": found.spec.selector,
        "publishNotReadyAddresses": found.spec.publish_not_ready_addresses,
    }
