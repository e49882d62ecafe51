"""Renders topology constraints without Grove: as annotations for Kueue, or as pod affinity.

`domainToLabelMapping` maps a domain to a node label. Affinity keeps pods together without gang scheduling:
the first pod determines the domain, and others stay pending if that domain has no capacity for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from grove.api.configuration.types import DynamoTopology, TopologyMode
from grove.api.field_errors import FieldError, invalid, required
from grove.api.formats import quantities
from grove.api.meta import Condition
from grove.dynamo import keys, naming
from grove.dynamo.api.status import LEVELS
from grove.dynamo.context import GraphContext
from grove.dynamo.graph import Body, Graph, GraphComponent, mapping
from grove.plan.conditions import new_condition

QUEUE = "kueue.x-k8s.io/queue-name"
_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_PODSET_GROUP = "kueue.x-k8s.io/podset-group-name"
_SET_NAME = "leaderworkerset.sigs.k8s.io/name"
_GROUP = "leaderworkerset.sigs.k8s.io/group-key"
_MAX_GROUP_NAME = 39
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def queue(graph: Graph, topology: DynamoTopology) -> str:
    """The Kueue queue of a graph."""
    return graph.own_labels.get(QUEUE) or topology.queue_name


def is_queued(graph: Graph, component: GraphComponent, topology: DynamoTopology) -> bool:
    """Whether Kueue admits the pods of a component. Where it chooses nodes, it admits none without requests:
    such a component stays out of the queue, with its constraint as pod affinity."""
    return topology.mode is TopologyMode.KUEUE and graph.constrained and not requests_nothing(component)


def requests_nothing(component: GraphComponent) -> bool:
    """Whether the pods of a component request no resources, as far as the component says. A LimitRange may
    add some."""
    pod = component.pod
    parts = (component.main, *component.sidecars, *(pod.get("initContainers") or ()), pod)
    asked = (mapping(mapping(part).get("resources")) for part in parts)
    amounts = (
        amount
        for each in asked
        for kind in ("requests", "limits")
        for amount in mapping(each.get(kind)).values()
    )
    return not pod.get("resourceClaims") and not any(map(quantities.parse, amounts))


def domain_labels(graph: Graph, topology: DynamoTopology) -> dict[str, str]:
    """The node labels of the domains of a graph, by domain."""
    domains = (graph.topology.domain, *(each.domain for each in graph.components))
    labels = topology.domain_to_label_mapping
    return {domain: labels[domain] for domain in domains if domain in labels}


def levels_condition(graph: Graph, known: GraphContext) -> Condition:
    """Whether the domains exist: as levels of Kueue's topologies, or as labels of nodes."""
    if known.topology.mode is TopologyMode.KUEUE:
        return _kueue_levels_condition(graph, known)
    node_labels = known.node_labels
    if node_labels is None:
        return new_condition(LEVELS, None, "TopologyConditionPending", "The nodes are not read yet")
    if not (missing := _missing(graph, known, node_labels)):
        return new_condition(LEVELS, True, "AllTopologyLevelsAvailable", "Nodes with every label exist")
    return new_condition(LEVELS, False, "TopologyLevelsUnavailable", f"No node has the label {missing}")


def _kueue_levels_condition(graph: Graph, known: GraphContext) -> Condition:
    """Whether any Topology of Kueue has the levels; only Kueue knows which one a queue uses."""
    topologies = known.kueue_topologies
    if topologies is None:
        return new_condition(LEVELS, None, "TopologyConditionPending", "Kueue's Topologies are not read yet")
    if not topologies:
        why = "No Topology of Kueue exists: create one, and name it in the ResourceFlavor of the queue"
        return new_condition(LEVELS, False, "TopologyDefinitionNotFound", why)
    if not (missing := _missing(graph, known, frozenset(chain.from_iterable(topologies.values())))):
        return new_condition(
            LEVELS, True, "AllTopologyLevelsAvailable", "Kueue's Topologies have every level"
        )
    why = (
        f"No Topology of Kueue has the level {missing}; existing Topologies: {', '.join(sorted(topologies))}"
    )
    return new_condition(LEVELS, False, "TopologyLevelsUnavailable", why)


def _missing(graph: Graph, known: GraphContext, existing: frozenset[str]) -> str:
    found = domain_labels(graph, known.topology).items()
    return ", ".join(f"{label} ({domain})" for domain, label in found if label not in existing)


def problems(graph: Graph, topology: DynamoTopology) -> Iterator[FieldError]:
    """Errors of graphs that Kueue cannot admit."""
    if topology.mode is not TopologyMode.KUEUE:
        return
    if not queue(graph, topology):
        why = "name a queue, or set config.dynamo.topologyAwareScheduling.queueName"
        yield required(f"metadata.labels[{QUEUE}]", why)
    for component in graph.components:
        if component.multinode and _kueue_domain(graph, component) and requests_nothing(component):
            why = "Kueue places pods by their requests, and this component has none: set some, such as GPUs"
            yield required(f"{component.path}.{_resources(component)}", why)
        name = naming.leader_worker_set(graph, component)
        if component.multinode and len(name) > _MAX_GROUP_NAME:
            yield invalid(
                component.path,
                name,
                f"Kueue accepts names of LeaderWorkerSets with at most {_MAX_GROUP_NAME} characters",
            )


def _resources(component: GraphComponent) -> str:
    in_v1beta1 = component.path.startswith("spec.components")
    return "podTemplate.spec.containers[main].resources" if in_v1beta1 else "resources"


def _kueue_domain(graph: Graph, component: GraphComponent) -> str:
    """The domain into which Kueue packs each replica of a multi-node component."""
    return component.domain or graph.topology.domain


def kueue_annotations(graph: Graph, component: GraphComponent, topology: DynamoTopology) -> dict[str, str]:
    """The annotations for Kueue on the pods of a multi-node component."""
    domain = _kueue_domain(graph, component)
    if topology.mode is not TopologyMode.KUEUE or not domain or not component.multinode:
        return {}
    label = topology.domain_to_label_mapping[domain]
    return {_REQUIRED: label, _PODSET_GROUP: naming.child_object(graph, component)}


def with_affinity(graph: Graph, component: GraphComponent, topology: DynamoTopology, spec: Body) -> Body:
    """The pod spec with affinity for the domains. Terms of the user are kept."""
    labels = topology.domain_to_label_mapping
    terms, domains = [], []
    by_kueue = topology.mode is TopologyMode.KUEUE and component.multinode
    if component.domain and not by_kueue:
        domains.append(labels[component.domain])
        terms.append(_component_term(graph, component, labels[component.domain]))
    if graph.topology.domain:
        domains.append(labels[graph.topology.domain])
        terms.append(_term(labels[graph.topology.domain], {keys.GRAPH: graph.name}))
    if not terms:
        return spec
    affinity: Body = dict(spec.get("affinity") or {})
    pods: Body = dict(affinity.get("podAffinity") or {})
    pods[_REQUIRED_TERMS] = [*pods.get(_REQUIRED_TERMS, ()), *terms]
    affinity |= {"podAffinity": pods, "nodeAffinity": _require_labels(affinity.get("nodeAffinity"), domains)}
    return {**spec, "affinity": affinity}


def _component_term(graph: Graph, component: GraphComponent, label: str) -> Body:
    """The affinity term of all pods of a component, or of each replica if it is multi-node."""
    if not component.multinode:
        return _term(label, {keys.SELECTOR: naming.child_object(graph, component)})
    return _term(label, {_SET_NAME: naming.leader_worker_set(graph, component)}) | {
        "matchLabelKeys": [_GROUP]
    }


def _term(label: str, selected: dict[str, str]) -> Body:
    return {"topologyKey": label, "labelSelector": {"matchLabels": selected}}


def _require_labels(given: Any, domains: list[str]) -> Body:
    """Node affinity that requires the labels of the domains, added to every alternative of the user."""
    found: Body = dict(given or {})
    exist = [{"key": label, "operator": "Exists"} for label in dict.fromkeys(domains)]
    alternatives = (found.get(_REQUIRED_TERMS) or {}).get("nodeSelectorTerms") or [{}]
    terms = [
        {**each, "matchExpressions": [*each.get("matchExpressions", ()), *exist]} for each in alternatives
    ]
    found[_REQUIRED_TERMS] = {"nodeSelectorTerms": terms}
    return found
