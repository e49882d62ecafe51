"""A deployment as a PodCliqueSet, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.api import foreign
from grove.api.sets import PodCliqueSet, StartupType
from grove.dynamo import engines, keys, naming, pods
from grove.dynamo.engines import Part
from grove.dynamo.graph import Body, Component, Graph
from grove.dynamo.places import GroveAddresses, Role
from grove.dynamo.told import AppliedTopology

_TERMINATION_DELAY = "15m0s"
KAI = "kai-scheduler"
_KAI_QUEUE = "dynamo"


class Setting(Struct, frozen=True):
    """What the cluster decides about a translation."""

    topology: str = ""
    """The topology that constraints mean."""
    scheduler: str = ""
    """The scheduler of pods that name none, if it must be named."""
    termination_delay: str = _TERMINATION_DELAY
    restarts: Mapping[str, str] = {}
    """The restart that each component has reached, by name."""


def workload(graph: Graph, setting: Setting) -> Body:
    """The PodCliqueSet, without an owner."""
    template = _template(graph, setting)
    spec: Body = {"replicas": 1, "template": template}
    if strategy := graph.own_annotations.get(keys.UPDATE_STRATEGY):
        spec["updateStrategy"] = {"type": strategy}
    annotations = dict(graph.annotations)
    if queue := graph.own_annotations.get(keys.VOLCANO_QUEUE):
        annotations[foreign.VOLCANO_QUEUE] = queue
    metadata: Body = {
        "name": naming.workload(graph),
        "namespace": graph.namespace,
        "labels": {**graph.labels, keys.GRAPH: graph.name},
    }
    if annotations:
        metadata["annotations"] = annotations
    kind = PodCliqueSet.KIND
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def applied(graph: Graph, setting: Setting) -> tuple[AppliedTopology, ...]:
    """The constraints that the set carries."""
    name, found = naming.workload(graph), []
    if graph.topology.domain:
        found.append(AppliedTopology("", graph.topology.domain, setting.topology, f"PodCliqueSet/{name}"))
    for component in graph.components:
        if component.domain:
            kind = "PodCliqueScalingGroup" if component.multinode else "PodClique"
            carrier = f"{kind}/{naming.part(graph, component)}"
            found.append(AppliedTopology(component.name, component.domain, setting.topology, carrier))
    return tuple(found)


def _template(graph: Graph, setting: Setting) -> Body:
    cliques = [clique for component in graph.components for clique in _cliques(graph, component, setting)]
    ordered = any("startsAfter" in clique["spec"] for clique in cliques)
    template: Body = {
        "cliqueStartupType": (StartupType.EXPLICIT if ordered else StartupType.ANY_ORDER).value,
        "cliques": cliques,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "terminationDelay": setting.termination_delay,
    }
    if groups := [_group(graph, each, setting) for each in graph.components if each.multinode]:
        template["podCliqueScalingGroups"] = groups
    if graph.priority_class:
        template["priorityClassName"] = graph.priority_class
    if graph.topology.domain:
        template["topologyConstraint"] = {
            "topologyName": setting.topology,
            "pack": {"required": graph.topology.domain},
        }
    return template


def _cliques(graph: Graph, component: Component, setting: Setting) -> list[Body]:
    if not component.multinode:
        clique = _clique(graph, component, Role.WHOLE, setting)
        clique["spec"] |= {"replicas": component.replicas, "minAvailable": component.min_available}
        if component.domain:
            clique["topologyConstraint"] = _constraint(graph, component, setting)
        return [clique]
    found = []
    for role, count in ((Role.LEADER, 1), (Role.WORKER, component.nodes - 1)):
        clique = _clique(graph, component, role, setting)
        clique["spec"] |= {"replicas": count, "minAvailable": count}
        if role is Role.LEADER and engines.framework(graph, component) == "trtllm":
            clique["spec"]["startsAfter"] = [naming.clique(component, Role.WORKER)]
        found.append(clique)
    return found


def _clique(graph: Graph, component: Component, role: Role, setting: Setting) -> Body:
    name = naming.clique(component, role)
    spec = pods.pod_spec(Part(graph, component, role, GroveAddresses()))
    labels = pods.labels(graph, component)
    reached = setting.restarts.get(component.name)
    restarted = {keys.RESTARTED: reached} if reached else {}
    if setting.scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = setting.scheduler
    if spec.get("schedulerName") == KAI:
        queue = graph.own_annotations.get(keys.KAI_QUEUE, "").strip()
        labels.setdefault(foreign.KAI_QUEUE, queue or _KAI_QUEUE)
    found: dict[str, Any] = {
        "name": name,
        "labels": labels,
        "annotations": {**pods.carried(graph, component), **restarted},
        "spec": {"roleName": name, "podSpec": spec},
    }
    return found


def _group(graph: Graph, component: Component, setting: Setting) -> Body:
    group: Body = {
        "name": component.lower,
        "cliqueNames": [naming.clique(component, role) for role in (Role.LEADER, Role.WORKER)],
        "replicas": max(component.replicas, 1),  # none at all is a matter of scaling, once it is there
        "minAvailable": component.min_available,
    }
    if component.domain:
        group["topologyConstraint"] = _constraint(graph, component, setting)
    return group


def _constraint(graph: Graph, component: Component, setting: Setting) -> Body:
    """With the topology's name only where no set around it says it."""
    named = {} if graph.topology.domain else {"topologyName": setting.topology}
    return {**named, "pack": {"required": component.domain}}
