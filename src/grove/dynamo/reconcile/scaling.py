"""Components that autoscalers scale: each has an adapter, made with the component's count. From then on the
adapter's count is the component's."""

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
from grove.rules.model import FieldError, forbidden

_ADAPTER, _GRAPH = ScalingAdapter.KIND, DynamoGraphDeployment.KIND
_ACCOUNT = "system:serviceaccount:"


def writes(graph: Graph, snapshot: GraphSnapshot, now: float) -> Iterator[Intent]:
    """Adapters where they are asked for, none elsewhere, and the counts that they ask for."""
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
    """The components that their adapters want to have another count, with that count."""
    for component in graph.components:
        present = _existing(graph, component, snapshot)
        if component.has_scaling_adapter and present is not None:
            wanted = _mapping(present.spec).get("replicas", component.replicas)
            if wanted != component.replicas:
                yield component, wanted


def on_update(old: Graph, new: Graph, by: str) -> Iterator[FieldError]:
    """Counts that an adapter decides are not for others to change. `by` is who asks, if it is not us."""
    if not by or (by.startswith(_ACCOUNT) and by.endswith(f":{naming.PLANNER_ACCOUNT}")):
        return
    before = {each.name: each for each in old.components}
    for component in new.components:
        known = before.get(component.name)
        if known is None or not (known.has_scaling_adapter or component.has_scaling_adapter):
            continue
        if known.replicas != component.replicas:
            name = f"{_ADAPTER.name} {naming.child_object(new, component)}"
            why = f"{known.replicas} is what {name} says: scale that one, and leave replicas out here"
            yield forbidden(f"{component.path}.replicas", why)


def _follow_adapter(
    graph: Graph, component: GraphComponent, present: ChildObject, now: float
) -> Iterator[Intent]:
    """The component's count, and what the adapter tells of it."""
    if present.metadata.deletion_timestamp is not None:
        return
    wanted, told = _mapping(present.spec).get("replicas", component.replicas), _mapping(present.status)
    if wanted != component.replicas:
        about = Target(_GRAPH.api_version, _GRAPH.name, graph.name, graph.namespace)
        pointer = "/" + component.path.replace(".", "/").replace("[", "/").removesuffix("]")
        count = {"op": "add", "path": f"{pointer}/replicas", "value": wanted}
        # A list may have been put into another order meanwhile.
        same = {"op": "test", "path": f"{pointer}/name", "value": component.name}
        listed = component.path.startswith("spec.components")
        yield Patch(about, [same, count] if listed else [count], type=PatchType.JSON)
    say: Body = {"replicas": wanted, "selector": selector(graph, component)}
    if any(told.get(key) != value for key, value in say.items()):
        if "replicas" in told and told["replicas"] != wanted:
            say["lastScaleTime"] = rfc3339(now)
        yield Status(target(adapter(graph, component)), {"status": say})


def _existing(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> ChildObject | None:
    return snapshot.children.get((_ADAPTER.name, naming.child_object(graph, component)))


def _mapping(value: object) -> Body:
    return value if isinstance(value, dict) else {}
