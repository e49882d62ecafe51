"""Errors of the PodCliqueSet that is rendered from a graph, with the field paths of the graph and with
remedies that its user has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.field_errors import FieldError, forbidden, invalid
from grove.dynamo import naming
from grove.dynamo.admission.topology_rules import pack_constraints
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render.addressing import Role
from grove.rules import decode
from grove.rules.decode import ObjectFormatError
from grove.rules.model import Facts
from grove.rules.podcliqueset import scheduler_rules

_PART = re.compile(r"spec\.template\.(cliques|podCliqueScalingGroups)(?:\[(\d+)\])?\.?(.*)", re.DOTALL)
_NAMED_ITEM = re.compile(r"(containers|initContainers|volumes)\[(\d+)\]")
_MAIN = "containers[main]"
_OF_TEMPLATE = {
    "spec.template.topologyConstraint.pack.required": "spec.topologyConstraint.packDomain",
    "spec.template.topologyConstraint.topologyName": "spec.topologyConstraint.clusterTopologyName",
    "spec.template.topologyConstraint": "spec.topologyConstraint",
    "spec.template.priorityClassName": "spec.priorityClassName",
    "metadata.name": "metadata.name",
}
_OF_COMPONENT = {
    "spec.replicas": "replicas",
    "spec.minAvailable": "minAvailable",
    "replicas": "replicas",
    "minAvailable": "minAvailable",
    "topologyConstraint.pack.required": "topologyConstraint.packDomain",
    "topologyConstraint": "topologyConstraint",
    "name": "name",
}
_NOT_KEPT = (
    f"%s cannot keep this constraint as it is configured: set placement in the profile of "
    f"{DEFAULT_SCHEDULER}, or use a scheduler that keeps it, such as kai-scheduler"
)


def errors_of_graph(
    graph: Graph, rendered: Body, errors: Iterable[FieldError], facts: Facts
) -> list[FieldError]:
    """The errors of a rendered set as errors of the graph. Constraints that its scheduler cannot keep are one
    error each."""
    not_kept = _not_kept(rendered, facts)
    found: list[FieldError] = []
    for each in errors:
        if each in not_kept:
            found += (forbidden(one.path, _NOT_KEPT % each.value) for one in pack_constraints(graph))
        elif path := _graph_path(graph, rendered, each.path):
            found.append(replace(each, path=path))
        else:
            found.append(invalid("spec", graph.name, f"its PodCliqueSet is invalid: {each}"))
    return list({str(each): each for each in found}.values())


def _not_kept(rendered: Body, facts: Facts) -> list[FieldError]:
    try:
        return scheduler_rules.unsupported_constraints(decode.workload(rendered), facts)
    except (ObjectFormatError, RecursionError):
        return []


def _graph_path(graph: Graph, rendered: Body, path: str) -> str:
    """The field of the graph that a field of the set is rendered from; empty if there is none."""
    if path in _OF_TEMPLATE:
        return _OF_TEMPLATE[path]
    match = _PART.fullmatch(path)
    if match is None:
        return ""
    kind, index, rest = match.groups()
    if index is None:
        component = next(iter(graph.components), None)
        found = _component_path(component, rest) if component is not None else ""
        return found.replace(component.path, _all_components(component), 1) if component and found else ""
    parts = rendered["spec"]["template"].get(kind) or ()
    name = parts[int(index)].get("name") if int(index) < len(parts) else ""
    component = next((each for each in graph.components if name in set(_names(each))), None)
    return _component_path(component, _with_names(parts[int(index)], rest)) if component is not None else ""


def _with_names(part: Body, rest: str) -> str:
    """The path with names instead of positions in lists that rendering adds to."""

    def named(match: re.Match[str]) -> str:
        items = ((part.get("spec") or {}).get("podSpec") or {}).get(match[1]) or ()
        position = int(match[2])
        return f"{match[1]}[{items[position].get('name')}]" if position < len(items) else match[0]

    return _NAMED_ITEM.sub(named, rest, count=1)


def _names(component: GraphComponent) -> Iterator[str]:
    """The names of the cliques and of the group of a component."""
    roles = (Role.LEADER, Role.WORKER) if component.multinode else (Role.SINGLE,)
    yield from (naming.clique(component, role) for role in roles)
    if component.multinode:
        yield component.lower


def _all_components(component: GraphComponent) -> str:
    return "spec.components[*]" if component.path.startswith("spec.components") else "spec.services[*]"


def _component_path(component: GraphComponent, rest: str) -> str:
    """The field of a component; its container is the one in `extraPodSpec.mainContainer` in v1alpha1."""
    if rest in _OF_COMPONENT:
        return f"{component.path}.{_OF_COMPONENT[rest]}"
    _, is_pod, field = rest.partition("spec.podSpec.")
    if not is_pod:
        return ""
    if component.path.startswith("spec.components"):
        return f"{component.path}.podTemplate.spec.{field}"
    if field.startswith(_MAIN):
        field = "mainContainer" + field.removeprefix(_MAIN)
    return f"{component.path}.extraPodSpec.{field}"
