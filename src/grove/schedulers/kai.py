"""The backend of the KAI scheduler: one PodGroup per gang, and one Topology per topology.

PodGroup             the gang: how many pods at least, in which queue, how close together
  subgroup           a replica of a scaling group that has a constraint
    subgroup         a clique
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Any

from grove.api.event_reasons import EventReason
from grove.api.intents import Intent
from grove.api.naming import external_keys
from grove.schedulers import kai_topology, podgang
from grove.schedulers.backend import (
    AnyTopology,
    Body,
    ForeignKind,
    GangRequest,
    ObjectCondition,
    PodAdditions,
    SchedulerBackend,
    SchedulerObject,
    SchedulingSpec,
    TopologySync,
    UnsupportedGang,
)
from grove.schedulers.queues import label_or_annotation, queue

NAME = "kai-scheduler"
POD_GROUP = ForeignKind("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
_TOPOLOGY = "kai.scheduler/topology"
_KAI_OWNED_FIELDS = ("queue", "markUnschedulable", "schedulingBackoff")
"""Fields of the spec that KAI, or a user who moves a gang to another queue, writes; kept as they are."""
_KAI_OWNED_LABELS = ("kai.scheduler/node-pool", external_keys.KAI_QUEUE)
_UNSCHEDULABLE_CONDITION = "UnschedulableOnNodePool"
_DEFAULT_POOL = "default"
_NO_CONDITION = ObjectCondition()


class Kai(SchedulerBackend):
    """The backend; its profile needs no configuration."""

    name = NAME
    gang_object_kind = POD_GROUP
    gang_annotations = MappingProxyType({external_keys.KAI_SKIP_PODGROUPER: "true"})
    annotation_prefixes = external_keys.KAI_PREFIXES
    topology_kind = kai_topology.TOPOLOGY

    def gang_object(self, request: GangRequest) -> Body | None:
        """The PodGroup of a gang."""
        gang, found = request.gang, request.found
        metadata: Body = {
            "name": gang["metadata"]["name"],
            "namespace": gang["metadata"]["namespace"],
            "labels": _merged(found.metadata.labels if found else {}, gang["metadata"].get("labels")),
            "ownerReferences": podgang.owner_references(gang, request.uid),
        }
        notes = _merged(found.metadata.annotations if found else {}, gang["metadata"].get("annotations"))
        if notes:
            metadata["annotations"] = notes
        if found:
            kept = {
                key: found.metadata.labels[key] for key in _KAI_OWNED_LABELS if key in found.metadata.labels
            }
            metadata["labels"] |= kept
        return {
            "apiVersion": POD_GROUP.api_version,
            "kind": POD_GROUP.name,
            "metadata": metadata,
            "spec": _spec(request, _topology(request)),
        }

    def pod_additions(self, gang: Body, clique: str, name: str) -> PodAdditions:  # noqa: ARG002 - its name is enough
        """The PodGroup and subgroup of a pod, so that KAI does not create one itself."""
        return PodAdditions(
            labels={external_keys.KAI_SUBGROUP: clique},
            annotations={
                external_keys.KAI_SKIP_PODGROUPER: "true",
                external_keys.KAI_POD_GROUP: name,
            },
        )

    def waiting_reason(self, found: SchedulerObject) -> str:
        """The latest message of KAI on a group that it could not place, with the node pool if it is not the
        default one. The reasons are for people; the message has them in the format of KAI's log."""
        latest = (found.reported_status.scheduling_conditions or (_NO_CONDITION,))[-1]
        if (latest.type, latest.status) != (_UNSCHEDULABLE_CONDITION, "True"):
            return ""
        reasons = dict.fromkeys(each.message for each in latest.reasons or () if each.message)
        message = "; ".join(reasons) or latest.message
        pooled = message and latest.node_pool not in ("", _DEFAULT_POOL)
        return f"node pool {latest.node_pool}: {message}" if pooled else message

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """KAI schedules nothing without a queue."""
        if wrong := _queue(scheduling_spec)[1]:
            yield wrong

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterable[str]:  # noqa: ARG002 - the same for every set
        """None: KAI supports all constraints."""
        return ()

    def sync_topology(self, topology: AnyTopology, found: SchedulerObject | None) -> TopologySync:
        return kai_topology.sync(topology, found)

    def on_topology_delete(self, name: str, found: SchedulerObject) -> tuple[Intent, ...]:
        return kai_topology.deleted(name, found)

    def check_topology_drift(
        self, topology: AnyTopology, reference: str, found: SchedulerObject | None
    ) -> TopologySync:
        return kai_topology.drift(topology, reference, found)


def _merged(found: dict[str, str], wanted: dict[str, str] | None) -> dict[str, str]:
    """The wanted labels or annotations, and those that others have set."""
    return {**found, **(wanted or {})}


def _queue(scheduling_spec: SchedulingSpec) -> tuple[str, str]:
    asked, wrong = queue(scheduling_spec, external_keys.KAI_QUEUE, label_or_annotation)
    if not asked and not wrong:
        key = external_keys.KAI_QUEUE
        wrong = f"the KAI scheduler needs a queue: label the PodCliqueSet, or its cliques, with {key}"
    return asked, wrong


def _topology(request: GangRequest) -> str:
    notes: dict[str, str] = request.gang["metadata"].get("annotations") or {}
    return request.topology or notes.get(_TOPOLOGY, "")


def _spec(request: GangRequest, topology: str) -> Body:
    gang = request.gang["spec"]
    live = request.found.spec if request.found else {}
    spec: Body = {field: live[field] for field in _KAI_OWNED_FIELDS if field in live}
    spec["minMember"] = podgang.minimum(request.gang)
    if not spec.get("queue"):
        spec["queue"], wrong = _queue(request.scheduling_spec)
        if wrong:
            raise UnsupportedGang(wrong, EventReason.KAI_MAPPING_FAILED)
    if priority := gang.get("priorityClassName"):
        spec["priorityClassName"] = priority
    spec["topologyConstraint"] = _constraint(gang, topology) or {}
    spec["subGroups"] = [*_parents(gang, topology), *_leaves(gang, topology)]
    return spec


def _parents(gang: Body, topology: str) -> Iterator[Body]:
    for config in gang.get("topologyConstraintGroupConfigs", ()):
        if members := config["podGroupNames"]:
            parent: Body = {"name": config["name"], "minSubGroup": len(members)}
            yield _constrained(parent, config, topology)


def _leaves(gang: Body, topology: str) -> Iterator[Body]:
    parents = {
        member: config["name"]
        for config in gang.get("topologyConstraintGroupConfigs", ())
        for member in config["podGroupNames"]
    }
    for group in gang["podgroups"]:
        leaf: Body = {"name": group["name"], "minMember": group["minReplicas"]}
        if parent := parents.get(group["name"]):
            leaf["parent"] = parent
        yield _constrained(leaf, group, topology)


def _constrained(subgroup: Body, part: Body, topology: str) -> Body:
    constraint = _constraint(part, topology)
    return {**subgroup, "topologyConstraint": constraint} if constraint else subgroup


def _constraint(part: Body, topology: str) -> dict[str, Any] | None:
    levels = {
        f"{how}TopologyLevel": key
        for how in ("required", "preferred")
        if (key := podgang.pack_key(part, how))
    }
    if not levels:
        return None
    if not topology:
        why = "the gang has a topology constraint but names no topology: set topologyName"
        raise UnsupportedGang(why, EventReason.KAI_MAPPING_FAILED)
    return {"topology": topology, **levels}
