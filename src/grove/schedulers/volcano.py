"""The backend of Volcano: one PodGroup per gang, with a subgroup for each clique. No topology constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.event_reasons import EventReason
from grove.api.naming import external_keys, labels
from grove.schedulers import podgang
from grove.schedulers.backend import (
    Body,
    ClusterLookup,
    ForeignKind,
    GangRequest,
    PodAdditions,
    SchedulerBackend,
    SchedulerObject,
    SchedulingSpec,
    UnsupportedGang,
)
from grove.schedulers.queues import annotation, queue

NAME = "volcano"
POD_GROUP = ForeignKind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUE = ForeignKind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
DEFAULT_QUEUE = "default"
_OPEN_STATE = "Open"
_UNSCHEDULABLE_CONDITION = "Unschedulable"
_PENDING_PHASE = "Pending"
"""The phase of a group that is not admitted to its queue yet; the next one is `Inqueue`."""
_VOLCANO_OWNED_FIELDS = ("minResources", "minTaskMember")
"""Fields of the spec that Volcano's own controllers write; kept as they are."""


class Volcano(SchedulerBackend):
    """The backend; its profile needs no configuration."""

    name = NAME
    gang_object_kind = POD_GROUP
    inspects_crd = True
    annotation_prefixes = external_keys.VOLCANO_PREFIXES

    def gang_object(self, request: GangRequest) -> Body | None:
        """The PodGroup of a gang."""
        if request.kind_problem:
            raise UnsupportedGang(request.kind_problem, EventReason.VOLCANO_UNAVAILABLE)
        gang = request.gang
        metadata = gang["metadata"]
        return {
            "apiVersion": POD_GROUP.api_version,
            "kind": POD_GROUP.name,
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": dict(metadata.get("labels") or {}),
                "ownerReferences": podgang.owner_references(gang, request.uid),
            },
            "spec": _spec(request),
        }

    def pod_additions(self, gang: Body, clique: str, name: str) -> PodAdditions:  # noqa: ARG002 - subgroups are found by label
        """The PodGroup of a pod, under the annotations of current and earlier Volcano versions."""
        name = gang["metadata"]["name"]
        keys = (external_keys.VOLCANO_POD_GROUP, external_keys.VOLCANO_POD_GROUP_LEGACY)
        return PodAdditions(annotations=dict.fromkeys(keys, name))

    def waiting_reason(self, found: SchedulerObject) -> str:
        """Volcano's latest message on a group that it could not place or has not admitted to its queue."""
        status = found.reported_status
        refused = (
            each
            for each in status.conditions or ()
            if (each.type, each.status) == (_UNSCHEDULABLE_CONDITION, "True")
        )
        message = next((each.message for each in refused), "")
        if status.phase != _PENDING_PHASE:
            return message
        not_admitted = f"not admitted to queue {found.spec.get('queue') or DEFAULT_QUEUE} yet"
        return f"{not_admitted}: {message}" if message else not_admitted

    def crd_problem(self, definition: Body | None) -> str:
        return podgroup_crd_problem(definition)

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Why the queue of the set cannot be determined."""
        if wrong := queue(scheduling_spec, external_keys.VOLCANO_QUEUE, annotation)[1]:
            yield wrong

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """All constraints."""
        for owner, _ in podgang.constraints(scheduling_spec.template):
            yield f"volcano scheduler backend does not support topologyConstraint on {owner}: remove it"

    def lookups(self, scheduling_spec: SchedulingSpec) -> Iterator[ClusterLookup]:
        """The queue of the set."""
        asked, wrong = queue(scheduling_spec, external_keys.VOLCANO_QUEUE, annotation)
        if not wrong:
            yield ClusterLookup(QUEUE, asked or DEFAULT_QUEUE, f"annotation {external_keys.VOLCANO_QUEUE}")

    def lookup_problem(self, lookup: ClusterLookup, found: Body | None) -> str:
        """A queue must exist and be open."""
        if found is None:
            return f'Volcano queue "{lookup.name}" not found'
        state = (found.get("status") or {}).get("state") or "not open yet"
        return (
            ""
            if state == _OPEN_STATE
            else f'Volcano queue "{lookup.name}" is {state}: it must be {_OPEN_STATE}'
        )


def _spec(request: GangRequest) -> Body:
    gang, found = request.gang, request.found
    spec: Body = {
        "minMember": podgang.minimum(gang) or 1,
        "queue": queue(request.scheduling_spec, external_keys.VOLCANO_QUEUE, annotation)[0] or DEFAULT_QUEUE,
        "subGroupPolicy": [_policy(group) for group in gang["spec"]["podgroups"]],
    }
    if found is not None:
        spec |= {field: found.spec[field] for field in _VOLCANO_OWNED_FIELDS if field in found.spec}
    if found is not None and not podgang.minimum(gang):
        # A gang with a minimum of 0 for the moment, whose cliques are scaled to 0: keep the earlier values.
        kept = ("minMember", "subGroupPolicy")
        spec |= {field: found.spec[field] for field in kept if field in found.spec}
    if priority := gang["spec"].get("priorityClassName"):
        spec["priorityClassName"] = priority
    return spec


def _policy(group: Body) -> Body:
    return {
        "name": group["name"],
        "labelSelector": {"matchLabels": {labels.CLIQUE: group["name"]}},
        "matchLabelKeys": [labels.CLIQUE],
        "subGroupSize": group["minReplicas"] or 1,
        "minSubGroups": 1,
    }


def podgroup_crd_problem(definition: dict[str, Any] | None) -> str:
    """Why the installed CRD of PodGroups cannot be used; empty if it can."""
    wanted = f"{POD_GROUP.plural}.{POD_GROUP.group} {POD_GROUP.version} with spec.subGroupPolicy"
    advice = "install Volcano 1.14 or later"
    if definition is None:
        return f"{wanted} is not installed: {advice}"
    for version in definition["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        spec = (schema.get("properties") or {}).get("spec") or {}
        if version["name"] == POD_GROUP.version and version.get("served"):
            return (
                ""
                if "subGroupPolicy" in (spec.get("properties") or {})
                else f"{wanted} is not in the installed CRD: {advice}"
            )
    return f"{wanted} is not served: {advice}"
