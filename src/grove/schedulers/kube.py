"""The scheduler that every cluster has. By itself it knows no gangs; with `gangScheduling: true` in its
profile it is told of them by Kubernetes' own PodGroups (1.36, feature gates GenericWorkload and
GangScheduling, and TopologyAwareWorkloadScheduling for constraints).

A PodGroup is flat: one minimum, one label key, both unchangeable. So its name carries a hash of them, and a
gang whose constraint changes gets another group, which only pods that are yet to be made can join.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from grove.api import labels
from grove.api.config import DEFAULT_SCHEDULER
from grove.api.sets import PodCliqueSetTemplate
from grove.schedulers import gangs
from grove.schedulers.backend import Body, Foreign, ForeignKind, Marks, Request, Wish

NAME = DEFAULT_SCHEDULER
POD_GROUP = ForeignKind("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
_PLACED = "PodGroupScheduled"
_WEIGHT = 100
_SUFFIX = 8


class Kube:
    """The backend. `gang_scheduling`: tell the scheduler of gangs."""

    name = NAME

    def __init__(self, *, gang_scheduling: bool = False) -> None:
        self._gangs = self.minimum_first = gang_scheduling
        self.keeps: ForeignKind | None = POD_GROUP if gang_scheduling else None

    def told_name(self, gang: Body) -> str:
        return group_name(gang)

    def told(self, request: Request) -> Body | None:
        """The PodGroup of a gang; none for a gang that needs nobody, and never a change of one."""
        gang = request.gang
        if not self._gangs or not gangs.minimum(gang) or request.found is not None:
            return None
        carried = dict(gang["metadata"].get("labels") or {}) | {labels.GANG: gang["metadata"]["name"]}
        return {
            "apiVersion": POD_GROUP.api_version,
            "kind": POD_GROUP.name,
            "metadata": {
                "name": group_name(gang),
                "namespace": gang["metadata"]["namespace"],
                "labels": carried,
                "ownerReferences": gangs.owned_by(gang, request.uid),
            },
            "spec": _terms(gang),
        }

    def marks(self, gang: Body, clique: str) -> Marks:
        """Which group a pod is in, and whom it should rather be near to."""
        near = tuple(_near(gang, clique))
        if not self._gangs or not gangs.minimum(gang):
            return Marks(near=near)
        return Marks(spec={"schedulingGroup": {"podGroupName": group_name(gang)}}, near=near)

    def why(self, found: Foreign) -> str:
        """The scheduler's last words on a group that it could not place."""
        said = found.said.conditions or ()
        return next((each.message for each in said if (each.type, each.status) == (_PLACED, "False")), "")

    def cannot(self, wish: Wish) -> Iterator[str]:  # noqa: ARG002 - it takes any set
        yield from ()

    def cannot_keep(self, wish: Wish) -> Iterator[str]:
        """Required constraints, but for a single one that holds for all pods of a gang."""
        required = [whose for whose, each in gangs.constraints(wish.template) if each.required]
        if required and not self._gangs:
            yield (
                f"{NAME} cannot keep required topology constraints ({', '.join(required)}): set "
                "gangScheduling in its profile, use pack.preferred, or another scheduler"
            )
        elif len(required) > 1 or any(whose not in _for_all(wish.template) for whose in required):
            yield (
                f"{NAME} can keep one required topology constraint, for all pods of a gang, not those on "
                f"{', '.join(required)}: leave it on the PodCliqueSet, use pack.preferred elsewhere, or "
                "another scheduler"
            )


def _for_all(template: PodCliqueSetTemplate) -> Iterator[str]:
    """Whose constraints hold for all pods of each gang."""
    yield gangs.THE_SET
    cliques, groups = template.cliques, template.pod_clique_scaling_groups
    grouped = {name for group in groups for name in group.clique_names}
    alone = len(groups) == 1 and groups[0].min_available == 1 and grouped == {each.name for each in cliques}
    if alone:
        yield gangs.of_group(groups[0].name)
    if len(cliques) == 1 and (alone or not grouped):
        yield gangs.of_clique(cliques[0].name)


def group_name(gang: Body) -> str:
    """The gang's name and what its group can never change."""
    terms = msgspec.json.encode(_terms(gang), order="deterministic")
    digest = hashlib.sha256(terms).hexdigest()[:_SUFFIX]
    return f"{gang['metadata']['name']}-{digest}"


def _terms(gang: Body) -> Body:
    spec: Body = {"schedulingPolicy": {"gang": {"minCount": gangs.minimum(gang)}}}
    if key := _key(gang["spec"]):
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return spec


def _key(gang: Body) -> str:
    """The one key that holds for all pods: the gang's own, or that of a part that is all there is."""
    if key := gangs.pack(gang, "required"):
        return key
    everyone = {group["name"] for group in gang["podgroups"]}
    for config in gang.get("topologyConstraintGroupConfigs", ()):
        if everyone <= set(config["podGroupNames"]) and (key := gangs.pack(config, "required")):
            return key
    return gangs.pack(gang["podgroups"][0], "required") if len(everyone) == 1 else ""


def _near(gang: Body, clique: str) -> Iterator[Body]:
    """One soft term for each unit that a pod is in and that should sit closer together."""
    spec = gang["spec"]
    if key := gangs.pack(spec, "preferred"):
        yield _term(key, {"matchLabels": {labels.GANG: gang["metadata"]["name"]}})
    for config in spec.get("topologyConstraintGroupConfigs", ()):
        members = list(config["podGroupNames"])
        if clique in members and (key := gangs.pack(config, "preferred")):
            among = {"key": labels.CLIQUE, "operator": "In", "values": members}
            yield _term(key, {"matchExpressions": [among]})
    for group in spec["podgroups"]:
        if group["name"] == clique and (key := gangs.pack(group, "preferred")):
            yield _term(key, {"matchLabels": {labels.CLIQUE: clique}})


def _term(key: str, selector: Body) -> Body:
    return {"weight": _WEIGHT, "podAffinityTerm": {"topologyKey": key, "labelSelector": selector}}
