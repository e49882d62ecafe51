"""Validation of the pods that are rendered from a graph: the API server refuses a workload in which two
volumes, mounts, containers, ports or variables have the same key."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from grove.api.crds import openapi
from grove.api.field_errors import FieldError
from grove.api.shapes.list_keys import list_key_errors
from grove.dynamo.admission import field_paths
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.graph import MAIN, Body, Graph, GraphComponent
from grove.dynamo.render import pod_template
from grove.dynamo.render.addressing import GroveAddresses, Role
from grove.dynamo.render.engines import ComponentRole

_POD = "io.k8s.api.core.v1.PodSpec"
_ADDED = "the operator adds one: rename or remove yours"


def errors(found: DynamoGraphDeployment, graph: Graph) -> Iterator[FieldError]:
    """An error for each duplicate, at the field of the graph that it comes from."""
    for component in graph.components:
        written = list(_duplicates(found, component, _written_pod(component)))
        yield from written
        reported = {(each.path, each.value) for each in written}
        for each in _rendered_duplicates(found, graph, component):
            if (each.path, each.value) not in reported:
                reported.add((each.path, each.value))
                yield replace(each, detail=_ADDED)


def _written_pod(component: GraphComponent) -> Body:
    """The pod as the user wrote it."""
    return {**component.pod, "containers": [{**component.main, "name": MAIN}, *component.sidecars]}


def _rendered_duplicates(
    found: DynamoGraphDeployment, graph: Graph, component: GraphComponent
) -> Iterator[FieldError]:
    for role in (Role.LEADER, Role.WORKER) if component.multinode else (Role.SINGLE,):
        # Which backend the addresses are of makes no difference for keys.
        spec = pod_template.pod_spec(ComponentRole(graph, component, role, GroveAddresses()))
        yield from _duplicates(found, component, spec)


def _duplicates(found: DynamoGraphDeployment, component: GraphComponent, pod: Body) -> Iterator[FieldError]:
    path, main = field_paths.pod_spec(component), field_paths.main_container(component)
    for error in list_key_errors(pod, openapi.embedded(_POD), path):
        where = error.path.replace(f"{path}.containers[{MAIN}]", main)
        service = found.spec.services.get(component.name) if field_paths.is_alpha(component) else None
        points = {each.mount_point for each in service.volume_mounts} if service else set()
        if where == f"{main}.volumeMounts" and error.value in points:
            where = f"{component.path}.volumeMounts"
        yield replace(error, path=where)
