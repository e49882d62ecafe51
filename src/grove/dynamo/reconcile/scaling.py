"""Components that autoscalers scale: each has a scaling adapter, created with the component's replicas. From
then on the adapter's replicas are copied to the component."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.intents import Create, Delete, Intent, Patch, PatchType, Status, Target
from grove.dynamo import naming
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.scaling_adapter import ScalingAdapter, adapter, selector
from grove.dynamo.backends.object_writes import target, with_owner
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.snapshot import ChildObject, GraphSnapshot
from grove.plan.timestamps import rfc3339

_ADAPTER, _GRAPH = ScalingAdapter.KIND, DynamoGraphDeployment.KIND


def writes(graph: Graph, snapshot: GraphSnapshot, now: float) -> Iterator[Intent]:
    """Writes that create, delete and follow adapters."""
    for component in graph.components:
        present = _existing(graph, component, snapshot)
        body = adapter(graph, component)
        if not component.has_scaling_adapter:
            if present is not None and any(
                each.uid == graph.uid for each in present.metadata.owner_references
            ):
                yield Delete(target(body), uid=present.metadata.uid)
        elif present is None:
            yield Create(target(body), with_owner(graph, body))
        else:
            yield from _follow_adapter(graph, component, present, now)


def replica_changes(graph: Graph, snapshot: GraphSnapshot) -> Iterator[tuple[GraphComponent, int]]:
    """The components whose adapter has another number of replicas, with that number."""
    for component in graph.components:
        present = _existing(graph, component, snapshot)
        if component.has_scaling_adapter and present is not None:
            wanted = _mapping(present.spec).get("replicas", component.replicas)
            if wanted != component.replicas:
                yield component, wanted


def _follow_adapter(
    graph: Graph, component: GraphComponent, present: ChildObject, now: float
) -> Iterator[Intent]:
    """Copy the adapter's replicas to the component, and write the adapter's status."""
    if present.metadata.deletion_timestamp is not None:
        return
    wanted, status = _mapping(present.spec).get("replicas", component.replicas), _mapping(present.status)
    if wanted != component.replicas:
        about = Target(_GRAPH.api_version, _GRAPH.name, graph.name, graph.namespace)
        pointer = "/" + component.path.replace(".", "/").replace("[", "/").removesuffix("]")
        count = {"op": "add", "path": f"{pointer}/replicas", "value": wanted}
        # The list may have been reordered meanwhile.
        same = {"op": "test", "path": f"{pointer}/name", "value": component.name}
        listed = component.path.startswith("spec.components")
        yield Patch(about, [same, count] if listed else [count], type=PatchType.JSON)
    desired: Body = {"replicas": wanted, "selector": selector(graph, component)}
    if any(status.get(key) != value for key, value in desired.items()):
        if "replicas" in status and status["replicas"] != wanted:
            desired["lastScaleTime"] = rfc3339(now)
        yield Status(target(adapter(graph, component)), {"status": desired})


def _existing(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> ChildObject | None:
    return snapshot.children.get((_ADAPTER.name, naming.child_object(graph, component)))


def _mapping(value: object) -> Body:
    return value if isinstance(value, dict) else {}
