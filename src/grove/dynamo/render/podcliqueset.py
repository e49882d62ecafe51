"""Renders a graph as a PodCliqueSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.api.naming import external_keys
from grove.api.types.podcliqueset import PodCliqueSet, StartupType
from grove.dynamo import keys, naming
from grove.dynamo.api.status import AppliedTopology
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import engines, pod_template
from grove.dynamo.render.addressing import GroveAddresses, Role
from grove.dynamo.render.engines import ComponentRole

_TERMINATION_DELAY = "15m0s"
KAI = "kai-scheduler"
_KAI_QUEUE = "dynamo"


class RenderSettings(Struct, frozen=True):
    """Inputs of rendering that do not come from the graph itself."""

    topology: str = ""
    """The topology of the constraints."""
    scheduler: str = ""
    """The schedulerName of pods that have none; empty: Kubernetes' default."""
    termination_delay: str = _TERMINATION_DELAY
    restarts: Mapping[str, str] = {}
    """The restart id of each component, by name."""


def workload(graph: Graph, setting: RenderSettings) -> Body:
    """The PodCliqueSet, without an owner."""
    template = _template(graph, setting)
    spec: Body = {"replicas": 1, "template": template}
    if strategy := graph.own_annotations.get(keys.UPDATE_STRATEGY):
        spec["updateStrategy"] = {"type": strategy}
    annotations = dict(graph.annotations)
    if queue := graph.own_annotations.get(keys.VOLCANO_QUEUE):
        annotations[external_keys.VOLCANO_QUEUE] = queue
    metadata: Body = {
        "name": naming.workload(graph),
        "namespace": graph.namespace,
        "labels": {**graph.labels, keys.GRAPH: graph.name},
    }
    if annotations:
        metadata["annotations"] = annotations
    kind = PodCliqueSet.KIND
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def applied(graph: Graph, setting: RenderSettings) -> tuple[AppliedTopology, ...]:
    """The constraints that the set carries."""
    name, found = naming.workload(graph), []
    if graph.topology.domain:
        found.append(AppliedTopology("", graph.topology.domain, setting.topology, f"PodCliqueSet/{name}"))
    for component in graph.components:
        if component.domain:
            kind = "PodCliqueScalingGroup" if component.multinode else "PodClique"
            workload_ref = f"{kind}/{naming.component_object(graph, component)}"
            found.append(AppliedTopology(component.name, component.domain, setting.topology, workload_ref))
    return tuple(found)


def _template(graph: Graph, setting: RenderSettings) -> Body:
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


def _cliques(graph: Graph, component: GraphComponent, setting: RenderSettings) -> list[Body]:
    if not component.multinode:
        clique = _clique(graph, component, Role.SINGLE, setting)
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


def _clique(graph: Graph, component: GraphComponent, role: Role, setting: RenderSettings) -> Body:
    name = naming.clique(component, role)
    spec = pod_template.pod_spec(ComponentRole(graph, component, role, GroveAddresses()))
    labels = pod_template.labels(graph, component)
    reached = setting.restarts.get(component.name)
    restarted = {keys.RESTARTED: reached} if reached else {}
    if setting.scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = setting.scheduler
    if spec.get("schedulerName") == KAI:
        queue = graph.own_annotations.get(keys.KAI_QUEUE, "").strip()
        labels.setdefault(external_keys.KAI_QUEUE, queue or _KAI_QUEUE)
    found: dict[str, Any] = {
        "name": name,
        "labels": labels,
        "annotations": {**pod_template.pod_annotations(graph, component), **restarted},
        "spec": {"roleName": name, "podSpec": spec},
    }
    return found


def _group(graph: Graph, component: GraphComponent, setting: RenderSettings) -> Body:
    group: Body = {
        "name": component.lower,
        "cliqueNames": [naming.clique(component, role) for role in (Role.LEADER, Role.WORKER)],
        "replicas": max(component.replicas, 1),  # 0 is set by scaling, once the group exists
        "minAvailable": component.min_available,
    }
    if component.domain:
        group["topologyConstraint"] = _constraint(graph, component, setting)
    return group


def _constraint(graph: Graph, component: GraphComponent, setting: RenderSettings) -> Body:
    """The constraint of a component; it names the topology only if the set has no constraint."""
    named = {} if graph.topology.domain else {"topologyName": setting.topology}
    return {**named, "pack": {"required": component.domain}}
