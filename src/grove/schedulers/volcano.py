"""Volcano: one PodGroup per gang, with a subgroup for each clique. It is told nothing of topologies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api import foreign, labels
from grove.api.events import EventReason
from grove.schedulers import gangs
from grove.schedulers.backend import (
    Body,
    Enquiry,
    Foreign,
    ForeignKind,
    Marks,
    Request,
    Unmappable,
    Wish,
)
from grove.schedulers.queues import annotation, queue

NAME = "volcano"
POD_GROUP = ForeignKind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUE = ForeignKind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
DEFAULT_QUEUE = "default"
_OPEN = "Open"
_UNPLACED = "Unschedulable"
_NOT_ADMITTED = "Pending"
"""The phase of a group that its queue has no room for yet; then it is `Inqueue`."""
_ITS_SPEC = ("minResources", "minTaskMember")
"""What Volcano's own controllers write into the spec."""


class Volcano:
    """The backend; its profile needs no configuration."""

    name = NAME
    keeps: ForeignKind | None = POD_GROUP
    minimum_first = False

    def told_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def told(self, request: Request) -> Body | None:
        """The PodGroup of a gang."""
        if request.lacking:
            raise Unmappable(request.lacking, EventReason.VOLCANO_UNAVAILABLE)
        gang = request.gang
        metadata = gang["metadata"]
        return {
            "apiVersion": POD_GROUP.api_version,
            "kind": POD_GROUP.name,
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": dict(metadata.get("labels") or {}),
                "ownerReferences": gangs.owned_by(gang, request.uid),
            },
            "spec": _spec(request),
        }

    def marks(self, gang: Body, clique: str) -> Marks:  # noqa: ARG002 - subgroups are found by label
        """Which PodGroup a pod is in, for Volcano of today and of yesterday."""
        name = gang["metadata"]["name"]
        keys = (foreign.VOLCANO_POD_GROUP, foreign.VOLCANO_POD_GROUP_LEGACY)
        return Marks(annotations=dict.fromkeys(keys, name))

    def why(self, found: Foreign) -> str:
        """Its latest words on a group that it could not place, or has not let into its queue."""
        said = found.said
        refused = (each for each in said.conditions or () if (each.type, each.status) == (_UNPLACED, "True"))
        words = next((each.message for each in refused), "")
        if said.phase != _NOT_ADMITTED:
            return words
        outside = f"not admitted to queue {found.spec.get('queue') or DEFAULT_QUEUE} yet"
        return f"{outside}: {words}" if words else outside

    def lacks(self, definition: Body | None) -> str:
        return incapable(definition)

    def cannot(self, wish: Wish) -> Iterator[str]:
        """Queues that are not agreed on."""
        if wrong := queue(wish, foreign.VOLCANO_QUEUE, annotation)[1]:
            yield wrong

    def cannot_keep(self, wish: Wish) -> Iterator[str]:
        """Any constraint."""
        for whose, _ in gangs.constraints(wish.template):
            yield f"volcano scheduler backend does not support topologyConstraint on {whose}: remove it"

    def enquires(self, wish: Wish) -> Iterator[Enquiry]:
        """The queue."""
        asked, wrong = queue(wish, foreign.VOLCANO_QUEUE, annotation)
        if not wrong:
            yield Enquiry(QUEUE, asked or DEFAULT_QUEUE, f"annotation {foreign.VOLCANO_QUEUE}")

    def unfit(self, enquiry: Enquiry, found: Body | None) -> str:
        """A queue must be there and open."""
        if found is None:
            return f'Volcano queue "{enquiry.name}" not found'
        state = (found.get("status") or {}).get("state") or "not open yet"
        return "" if state == _OPEN else f'Volcano queue "{enquiry.name}" is {state}: it must be {_OPEN}'


def _spec(request: Request) -> Body:
    gang, found = request.gang, request.found
    spec: Body = {
        "minMember": gangs.minimum(gang) or 1,
        "queue": queue(request.wish, foreign.VOLCANO_QUEUE, annotation)[0] or DEFAULT_QUEUE,
        "subGroupPolicy": [_policy(group) for group in gang["spec"]["podgroups"]],
    }
    if found is not None:
        spec |= {field: found.spec[field] for field in _ITS_SPEC if field in found.spec}
    if found is not None and not gangs.minimum(gang):
        # A gang that needs nobody for a moment: what held for it before holds on.
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


def incapable(definition: dict[str, Any] | None) -> str:
    """Why the installed CRD of PodGroups will not do; empty if it will."""
    wanted = f"{POD_GROUP.plural}.{POD_GROUP.group} {POD_GROUP.version} with spec.subGroupPolicy"
    advice = "install Volcano 1.14 or later"
    if definition is None:
        return f"there is no {wanted}: {advice}"
    for version in definition["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        spec = (schema.get("properties") or {}).get("spec") or {}
        if version["name"] == POD_GROUP.version and version.get("served"):
            return (
                "" if "subGroupPolicy" in (spec.get("properties") or {}) else f"it lacks {wanted}: {advice}"
            )
    return f"it does not serve {wanted}: {advice}"
