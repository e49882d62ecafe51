"""The backend of Kubernetes' default scheduler. By default the scheduler knows nothing of gangs. With
`gangScheduling: true` in the profile, each gang gets a PodGroup of Kubernetes (1.36, feature gates
GenericWorkload and GangScheduling, and TopologyAwareWorkloadScheduling for constraints).

A PodGroup is flat: one minimum and one label key, both immutable. So its name contains a hash of them, and a
gang whose minimum or constraint changes gets another group, which only pods that are still to be created can
join. Pods that only replace others are too few for the new group: they are scheduled without a group, near
the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from grove.api.configuration.default_scheduler import (
    DefaultSchedulerConfig,
    PlacementMode,
    PlacementSettings,
)
from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.schedulers import podgang
from grove.schedulers.backend import (
    Body,
    ForeignKind,
    GangRequest,
    PodAdditions,
    SchedulerBackend,
    SchedulerObject,
    SchedulingSpec,
)

NAME = DEFAULT_SCHEDULER
POD_GROUP = ForeignKind("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
_SCHEDULED_CONDITION = "PodGroupScheduled"
_WEIGHT = 100
_SUFFIX = 8


class Kube(SchedulerBackend):
    """The backend. `gang_scheduling`: create a PodGroup for each gang. `placement`: which gangs the operator
    chooses nodes for, and how; None: for none."""

    name = NAME

    def __init__(self, *, gang_scheduling: bool = False, placement: PlacementSettings | None = None) -> None:
        self.placement = placement or DefaultSchedulerConfig(placement=PlacementMode.OFF).placement_settings
        self.tries_fallbacks = self.placement.enabled
        self._gangs = self.minimum_first = gang_scheduling
        self.gang_object_kind = POD_GROUP if gang_scheduling else None

    def gang_object_name(self, gang: Body) -> str:
        return group_name(gang)

    def gang_object(self, request: GangRequest) -> Body | None:
        """The PodGroup of a gang; None for a gang with a minimum of 0, and if it exists: it is immutable."""
        gang = request.gang
        if not self._gangs or not podgang.minimum(gang) or request.found is not None:
            return None
        carried = dict(gang["metadata"].get("labels") or {}) | {labels.GANG: gang["metadata"]["name"]}
        return {
            "apiVersion": POD_GROUP.api_version,
            "kind": POD_GROUP.name,
            "metadata": {
                "name": group_name(gang),
                "namespace": gang["metadata"]["namespace"],
                "labels": carried,
                "ownerReferences": podgang.owner_references(gang, request.uid),
            },
            "spec": _group_spec(gang),
        }

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """The group of a pod, and its preferred topology constraints as affinity."""
        near = tuple(_preferred_terms(gang, clique))
        if not self._gangs or not podgang.minimum(gang):
            return PodAdditions(preferred_affinity=near)
        return PodAdditions(
            spec={"schedulingGroup": {"podGroupName": group_name(gang)}}, preferred_affinity=near
        )

    def can_join_group(self, gang: Body, members: Iterable[Pod | None]) -> bool:
        """Whether the group has its minimum of pods, counting those to be created. While pods of the gang
        still wait in an older group, new pods join the new one: without a group they would be scheduled
        before the gang."""
        if not self._gangs:
            return True
        name, inside = group_name(gang), 0
        for pod in members:
            group = _group_of(pod) if pod is not None else name
            if pod is not None and not pod.spec.node_name and group not in ("", name):
                return True
            inside += group == name
        return inside >= podgang.minimum(gang)

    def ungrouped_pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """No group; the topology constraint of the group as required affinity of the pods."""
        key = _topology_key(gang["spec"])
        beside = (_required_term(key, _same_gang(gang)),) if key else ()
        return PodAdditions(
            preferred_affinity=tuple(_preferred_terms(gang, clique)), required_affinity=beside
        )

    def waiting_reason(self, found: SchedulerObject) -> str:
        """The message of the scheduler on a group that it could not place."""
        conditions = found.reported_status.conditions or ()
        return next(
            (
                each.message
                for each in conditions
                if (each.type, each.status) == (_SCHEDULED_CONDITION, "False")
            ),
            "",
        )

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """None if the operator places the gangs; otherwise required constraints, except with PodGroups a
        single one that applies to all pods of a gang."""
        if self.placement.enabled:
            return
        required = [owner for owner, each in podgang.constraints(scheduling_spec.template) if each.required]
        if required and not self._gangs:
            yield (
                f"{NAME} cannot keep required topology constraints ({', '.join(required)}): set "
                "placement or gangScheduling in its profile, use pack.preferred, or another scheduler"
            )
        elif len(required) > 1 or any(
            owner not in _gang_wide_constraints(scheduling_spec.template) for owner in required
        ):
            yield (
                f"{NAME} can keep one required topology constraint, for all pods of a gang, not those on "
                f"{', '.join(required)}: leave it on the PodCliqueSet, use pack.preferred elsewhere, or "
                "another scheduler"
            )


def _gang_wide_constraints(template: PodCliqueSetTemplate) -> Iterator[str]:
    """The parts of a set whose constraints apply to all pods of each gang."""
    yield podgang.THE_SET
    cliques, groups = template.cliques, template.pod_clique_scaling_groups
    grouped = {name for group in groups for name in group.clique_names}
    alone = len(groups) == 1 and groups[0].min_available == 1 and grouped == {each.name for each in cliques}
    if alone:
        yield podgang.group_label(groups[0].name)
    if len(cliques) == 1 and (alone or not grouped):
        yield podgang.clique_label(cliques[0].name)


def group_name(gang: Body) -> str:
    """The gang's name with a hash of the group's immutable fields."""
    terms = msgspec.json.encode(_group_spec(gang), order="deterministic")
    digest = hashlib.sha256(terms).hexdigest()[:_SUFFIX]
    return f"{gang['metadata']['name']}-{digest}"


def _group_of(pod: Pod) -> str:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""


def _group_spec(gang: Body) -> Body:
    spec: Body = {"schedulingPolicy": {"gang": {"minCount": podgang.minimum(gang)}}}
    if key := _topology_key(gang["spec"]):
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return spec


def _topology_key(gang: Body) -> str:
    """The one label key that applies to all pods: the gang's, or that of a part that contains all pods."""
    if key := podgang.pack_key(gang, "required"):
        return key
    all_cliques = {group["name"] for group in gang["podgroups"]}
    for config in gang.get("topologyConstraintGroupConfigs", ()):
        if all_cliques <= set(config["podGroupNames"]) and (key := podgang.pack_key(config, "required")):
            return key
    return podgang.pack_key(gang["podgroups"][0], "required") if len(all_cliques) == 1 else ""


def _preferred_terms(gang: Body, clique: str) -> Iterator[Body]:
    """One preferred affinity term for each constraint of a pod: its gang's, group replica's and clique's."""
    spec = gang["spec"]
    if key := podgang.pack_key(spec, "preferred"):
        yield _term(key, _same_gang(gang))
    for config in spec.get("topologyConstraintGroupConfigs", ()):
        members = list(config["podGroupNames"])
        if clique in members and (key := podgang.pack_key(config, "preferred")):
            among = {"key": labels.CLIQUE, "operator": "In", "values": members}
            yield _term(key, {"matchExpressions": [among]})
    for group in spec["podgroups"]:
        if group["name"] == clique and (key := podgang.pack_key(group, "preferred")):
            yield _term(key, {"matchLabels": {labels.CLIQUE: clique}})


def _same_gang(gang: Body) -> Body:
    return {"matchLabels": {labels.GANG: gang["metadata"]["name"]}}


def _term(key: str, selector: Body) -> Body:
    return {"weight": _WEIGHT, "podAffinityTerm": _required_term(key, selector)}


def _required_term(key: str, selector: Body) -> Body:
    return {"topologyKey": key, "labelSelector": selector}
