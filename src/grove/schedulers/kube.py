"""The backend of Kubernetes' default scheduler, which by itself knows nothing of gangs. Unless `placement` is
`Off` in the profile, the operator chooses their nodes (see `grove.plan.placement`). With
`gangScheduling: true` in the profile, each gang gets a PodGroup of Kubernetes, in the version that the API
server serves: v1beta1 (1.37) or v1alpha2 (1.36).

Where a gang needs another group than its pods are in (see `kube_podgroups`), only pods that are still to be
created can join it. Pods that only replace others are too few for the new group: they are scheduled without a
group, near the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import shorten
from typing import Any

from grove import timing
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
    GangRequest,
    PlacementRequest,
    PodAdditions,
    SchedulerBackend,
    SchedulerObject,
    SchedulingSpec,
    UnsupportedGang,
)
from grove.schedulers.kube_podgroups import PodGroups, V1Alpha2, V1Beta1, group_of, topology_key

NAME = DEFAULT_SCHEDULER
_WEIGHT = 100
_REMEDY = "or remove gangScheduling from the profile of the default scheduler"
_NOT_SERVED = (
    "gangScheduling needs PodGroups of scheduling.k8s.io, which this cluster does not serve: with Kubernetes "
    "1.37 start API server, controller manager and scheduler with --feature-gates=GenericWorkload=true and "
    "the API server with --runtime-config=scheduling.k8s.io/v1beta1=true; with 1.36 with "
    "--feature-gates=GenericWorkload=true,GangScheduling=true and "
    "--runtime-config=scheduling.k8s.io/v1alpha2=true; earlier versions have no gang scheduling: use another "
    f"scheduler, {_REMEDY}"
)
_UNDECODABLE = "no kind"
_FROM_EARLIER_VERSION = (
    "Kubernetes cannot read PodGroups that an earlier version of it stored, and its scheduler places no pod "
    "while they exist: delete them as docs/kubernetes-upgrade.md describes"
)


class Kube(SchedulerBackend):
    """The backend. `pod_groups`: create a PodGroup of this version for each gang; None: create none.
    `placement`: which gangs the operator chooses nodes for, and how; None: for none."""

    name = NAME

    def __init__(
        self, pod_groups: PodGroups | None = None, placement: PlacementSettings | None = None
    ) -> None:
        self.placement = placement or DefaultSchedulerConfig(placement=PlacementMode.OFF).placement_settings
        self.tries_fallbacks = self.placement.enabled
        self._groups = pod_groups
        self.minimum_first = pod_groups is not None
        self.gates_hold_group = pod_groups is not None and pod_groups.gates_hold_group
        self.gang_object_kind = pod_groups.kind if pod_groups else None

    def places(self, request: PlacementRequest) -> bool:
        """Gangs of several pods, by the setting; single pods only where that decides on their node."""
        if not self.placement.enabled:
            return False
        spec = request.gang["spec"]
        parts = (spec, *spec.get("topologyConstraintGroupConfigs", ()), *spec["podgroups"])
        required = any(podgang.pack_key(part, "required") for part in parts)
        preferred = any(podgang.pack_key(part, "preferred") for part in parts)
        if request.pods == 1:
            return required or request.in_fabric or request.follows_base
        constrained = required or preferred or request.in_fabric
        return constrained or self.placement.mode is PlacementMode.ALL

    def gang_object_name(self, request: GangRequest) -> str:
        if self._groups is None or not podgang.minimum(request.gang):
            return ""
        return self._groups.name(request)

    def gang_object(self, request: GangRequest) -> Body | None:
        """The PodGroup of a gang; None for a gang with a minimum of 0, and if it cannot be changed."""
        gang = request.gang
        if self._groups is None or not podgang.minimum(gang):
            return None
        if request.kind_problem:
            raise UnsupportedGang(request.kind_problem)
        if (spec := self._groups.spec(request)) is None:
            return None
        carried = dict(gang["metadata"].get("labels") or {}) | {labels.GANG: gang["metadata"]["name"]}
        return {
            "apiVersion": self._groups.kind.api_version,
            "kind": self._groups.kind.name,
            "metadata": {
                "name": request.name,
                "namespace": gang["metadata"]["namespace"],
                "labels": carried,
                "ownerReferences": podgang.owner_references(gang, request.uid),
            },
            "spec": spec,
        }

    def lost_constraints(self, gang: Body, spec: Mapping[str, Any]) -> str:
        """The topology key, if its feature gate is off: the API server drops it without an error."""
        return self._groups.lost_constraint(gang, spec) if self._groups is not None else ""

    def obsolete_objects(self, request: GangRequest) -> Iterable[str]:
        """The PodGroups of earlier levels, minimums or priorities that no pod names any more."""
        in_use = {request.name, *map(group_of, request.pods)}
        return () if self._groups is None else [name for name in request.objects if name not in in_use]

    def kind_problem(self, list_error: str) -> str:
        if not list_error:
            return _NOT_SERVED
        if _UNDECODABLE not in list_error:
            return ""
        return f"{_FROM_EARLIER_VERSION} ({shorten(list_error, timing.SCHEDULER_MESSAGE_LENGTH)})"

    def pod_additions(self, gang: Body, clique: str, name: str) -> PodAdditions:
        """The group of a pod, and its preferred topology constraints as affinity, unless the operator
        places the gang."""
        near = () if self.placement.enabled else tuple(_preferred_terms(gang, clique))
        if self._groups is None or not name:
            return PodAdditions(preferred_affinity=near)
        return PodAdditions(spec={"schedulingGroup": {"podGroupName": name}}, preferred_affinity=near)

    def can_join_group(self, gang: Body, name: str, members: Iterable[Pod | None]) -> bool:
        """Whether the group has its minimum of pods, counting those to be created. While pods of the gang
        still wait in an older group, new pods join the new one: without a group they would be scheduled
        before the gang."""
        if self._groups is None:
            return True
        inside = 0
        for pod in members:
            group = group_of(pod) if pod is not None else name
            if pod is not None and not pod.spec.node_name and group not in ("", name):
                return True
            inside += group == name
        return inside >= podgang.minimum(gang)

    def ungrouped_pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """No group; the topology constraint of the group as required affinity of the pods."""
        key = topology_key(gang["spec"])
        beside = (_required_term(key, _same_gang(gang)),) if key else ()
        return PodAdditions(
            preferred_affinity=tuple(_preferred_terms(gang, clique)), required_affinity=beside
        )

    def waiting_reason(self, found: SchedulerObject) -> str:
        """The message of the scheduler on a group that it could not place."""
        condition = self._groups.scheduled_condition if self._groups else ""
        conditions = found.reported_status.conditions or ()
        return next(
            (each.message for each in conditions if (each.type, each.status) == (condition, "False")), ""
        )

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """None if the operator places the gangs; otherwise required constraints, except with PodGroups a
        single one that applies to all pods of a gang."""
        if self.placement.enabled:
            return
        required = [owner for owner, each in podgang.constraints(scheduling_spec.template) if each.required]
        if required and self._groups is None:
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


def with_gang_scheduling(placement: PlacementSettings | None = None) -> Kube:
    """The backend that creates PodGroups, with those of earlier versions of Kubernetes. Where the operator
    places gangs, the groups have no topology key: the pods are pinned, and before 1.37 the scheduler never
    preempts for a group with a key."""
    keyed = placement is None or not placement.enabled
    backend = Kube(V1Beta1(keyed=keyed), placement)
    backend.older_versions = (Kube(V1Alpha2(keyed=keyed), placement),)
    return backend


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
