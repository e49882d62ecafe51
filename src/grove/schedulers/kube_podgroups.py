"""The PodGroups of Kubernetes, one class for each version of the API that the operator can use.

A PodGroup is flat: one minimum and one label key. Pods name their group in a field that is immutable, so a
gang keeps the group that its pods name for as long as that group fits.

    v1alpha2 (1.36)  everything is immutable: another minimum or key needs a group of another name
    v1beta1 (1.37)   the minimum can be changed; key, priority and disruption mode are immutable
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from grove.api.types.pod import Pod
from grove.schedulers import podgang
from grove.schedulers.backend import Body, ForeignKind, GangRequest, SchedulingSpec, UnsupportedGang

_GROUP = "scheduling.k8s.io"
_SUFFIX = 8
_DROPPED = (
    "the API server dropped the required topology level {key} from the PodGroup: start API server and "
    "scheduler with --feature-gates=TopologyAwareWorkloadScheduling=true, or let the operator place gangs: "
    "remove placement: Off from the profile of the default scheduler"
)


class PodGroups(ABC):
    """How one version of the API represents gangs."""

    kind: ForeignKind
    scheduled_condition: str
    """The condition that reports whether the scheduler could place the group."""
    gates_hold_group: bool = False
    """Whether one gated pod keeps its whole group out of the scheduling queue."""

    def __init__(self, *, keyed: bool = True) -> None:
        self._keyed = keyed

    @abstractmethod
    def name(self, request: GangRequest) -> str:
        """The name of the group that the pods of a gang join."""

    @abstractmethod
    def spec(self, request: GangRequest) -> Body | None:
        """The desired spec of the group; None if the existing one cannot be changed."""

    def lost_constraint(self, gang: Body, spec: Mapping[str, Any]) -> str:
        """That the stored group lacks the topology key of its gang, and what to do; empty if it does not."""
        key = topology_key(gang["spec"]) if self._keyed else ""
        return _DROPPED.format(key=key) if key and not _topology(spec) else ""

    def _terms(self, gang: Body) -> Body:
        """The minimum of a gang, and its topology key if groups have one."""
        terms: Body = {"schedulingPolicy": {"gang": {"minCount": podgang.minimum(gang)}}}
        if self._keyed and (key := topology_key(gang["spec"])):
            terms["schedulingConstraints"] = {"topology": [{"key": key}]}
        return terms


class V1Alpha2(PodGroups):
    """Kubernetes 1.36, with the feature gates GenericWorkload and GangScheduling."""

    kind = ForeignKind(_GROUP, "v1alpha2", "podgroups", "PodGroup")
    scheduled_condition = "PodGroupScheduled"

    def name(self, request: GangRequest) -> str:
        return hashed_name(request.gang, self._terms(request.gang))

    def spec(self, request: GangRequest) -> Body | None:
        return self._terms(request.gang) if request.found is None else None


class V1Beta1(PodGroups):
    """Kubernetes 1.37, with the feature gate GenericWorkload."""

    kind = ForeignKind(_GROUP, "v1beta1", "podgroups", "PodGroup")
    scheduled_condition = "PodGroupInitiallyScheduled"
    gates_hold_group = True

    def name(self, request: GangRequest) -> str:
        """The name that living pods have if its group is missing, as after an upgrade of Kubernetes; else
        that of an existing group with the same immutable fields; else a new one."""
        terms = self._terms(request.gang)
        named = Counter(name for pod in request.pods if (name := group_of(pod)))
        missing = named.keys() - request.objects.keys()
        waiting = {group_of(pod) for pod in request.pods if not pod.spec.node_name} & missing
        if waiting:  # without their group these pods are never scheduled
            return _most_frequent(waiting, named)
        if (before := hashed_name(request.gang, terms)) in missing:
            return before
        priority = priority_class(request.gang, request.scheduling_spec)
        wanted = _immutable_fields({**terms, **_priority_fields(priority)})
        fitting = [name for name, found in request.objects.items() if _immutable_fields(found.spec) == wanted]
        if fitting:
            return _most_frequent(fitting, named)
        return hashed_name(request.gang, {**terms, **_priority_fields(priority)})

    def spec(self, request: GangRequest) -> Body | None:
        """The minimum of an existing group is changed; a new group has all fields."""
        terms = self._terms(request.gang)
        if request.found is not None:
            return {**request.found.spec, "schedulingPolicy": terms["schedulingPolicy"]}
        priority = priority_class(request.gang, request.scheduling_spec)
        return {**terms, **_priority_fields(priority), "disruptionMode": {_disruption_mode(request.gang): {}}}


def hashed_name(gang: Body, terms: Body) -> str:
    """The gang's name with a hash of the fields by which groups of one gang differ."""
    encoded = msgspec.json.encode(terms, order="deterministic")
    return f"{gang['metadata']['name']}-{hashlib.sha256(encoded).hexdigest()[:_SUFFIX]}"


def group_of(pod: Pod) -> str:
    """The group that a pod names; empty if it names none."""
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""


def topology_key(spec: Body) -> str:
    """The one label key that applies to all pods: the gang's, or that of a part that contains all pods."""
    if key := podgang.pack_key(spec, "required"):
        return key
    all_cliques = {group["name"] for group in spec["podgroups"]}
    for config in spec.get("topologyConstraintGroupConfigs", ()):
        if all_cliques <= set(config["podGroupNames"]) and (key := podgang.pack_key(config, "required")):
            return key
    return podgang.pack_key(spec["podgroups"][0], "required") if len(all_cliques) == 1 else ""


def priority_class(gang: Body, scheduling_spec: SchedulingSpec) -> str:
    """The PriorityClass of a group: the gang's, which all pods get that name none, else the one that all its
    pods name. Raises UnsupportedGang if pods would have another priority than their group, as the scheduler
    never places such a group."""
    of_gang = gang["spec"].get("priorityClassName", "")
    of_pods = {_priority_of_pods(bytes(each.spec.pod_spec)) for each in scheduling_spec.template.cliques}
    others = sorted(of_pods - {of_gang, ""} if of_gang else of_pods)
    if of_gang and others:
        raise UnsupportedGang(
            f"the pods of a gang have one priority in Kubernetes' gang scheduling: priorityClassName is "
            f"{of_gang} in the template of the set and {', '.join(others)} in its cliques; remove the latter"
        )
    if len(others) > 1:
        raise UnsupportedGang(
            "the pods of a gang have one priority in Kubernetes' gang scheduling, and the cliques have "
            f"priorityClassName {', '.join(each or '(none)' for each in others)}: use one for all of them, "
            "or set spec.template.priorityClassName"
        )
    return of_gang or next(iter(others), "")


class _PodPriority(msgspec.Struct, frozen=True, rename="camel"):
    priority_class_name: str | None = None


@lru_cache(maxsize=1024)
def _priority_of_pods(pod_spec: bytes) -> str:
    return msgspec.json.decode(pod_spec, type=_PodPriority).priority_class_name or ""


def _priority_fields(priority: str) -> Body:
    return {"priorityClassName": priority} if priority else {}


def _immutable_fields(spec: Mapping[str, Any]) -> tuple[Any, str]:
    """Topology and priority. The disruption mode is not compared: the mode of a group follows from the size
    that its gang had at first."""
    return _topology(spec), spec.get("priorityClassName", "")


def _topology(spec: Mapping[str, Any]) -> list[Body]:
    return (spec.get("schedulingConstraints") or {}).get("topology") or []


def _disruption_mode(gang: Body) -> str:
    """`all` if the gang is useless without any of its pods: preemption then takes the whole gang or nothing.
    `single` if a clique has more pods than its minimum, so that a part can be preempted."""
    surplus = any(len(group["podReferences"]) > group["minReplicas"] for group in gang["spec"]["podgroups"])
    return "single" if surplus else "all"


def _most_frequent(names: Iterable[str], frequency: Counter[str]) -> str:
    return max(names, key=lambda name: (frequency[name], name))
