"""Components that autoscalers scale: each has a scaling adapter, created with the component's replicas. From
then on the adapter's replicas are copied to the component."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grove.api.intents import Delete, Intent, Patch, PatchType, Status
from grove.dynamo import naming
from grove.dynamo.api.scaling_adapter import ScalingAdapter, adapter, selector
from grove.dynamo.backends.object_writes import target, with_owner
from grove.dynamo.graph import Body, Graph, GraphComponent, mapping
from grove.dynamo.snapshot import ChildObject, GraphSnapshot, StoredGraph
from grove.plan.timestamps import rfc3339
from grove.plan.writes import builders


def adapter_writes(graph: Graph, snapshot: GraphSnapshot, now: float) -> Iterator[Intent]:
    """Writes that create and delete adapters, and their statuses."""
    for component in graph.components:
        present = _existing(graph, component, snapshot)
        body = adapter(graph, component)
        if not component.has_scaling_adapter:
            if present is not None and any(
                each.uid == graph.uid for each in present.metadata.owner_references
            ):
                yield Delete(target(body), uid=present.metadata.uid)
        elif present is None:
            yield builders.create(with_owner(graph, body))
        elif present.metadata.deletion_timestamp is None:
            yield from _status_write(graph, component, present, now)


def replica_changes(graph: Graph, snapshot: GraphSnapshot) -> list[tuple[GraphComponent, int]]:
    """The components whose adapter has another number of replicas, with that number."""
    found = []
    for component in graph.components:
        present = _existing(graph, component, snapshot)
        if component.has_scaling_adapter and present is not None:
            wanted = _wanted_replicas(component, present)
            if wanted != component.replicas and present.metadata.deletion_timestamp is None:
                found.append((component, wanted))
    return found


def replicas_patch(stored: StoredGraph, changes: Iterable[tuple[GraphComponent, int]]) -> Patch:
    """The patch that copies replicas from adapters to their components."""
    operations: list[Body] = []
    listed = mapping(stored.spec).get("components")
    names = [mapping(each).get("name") for each in listed] if isinstance(listed, list) else []
    for component, wanted in changes:
        if component.name in names:
            pointer = f"/spec/components/{names.index(component.name)}"
            # The list may have been reordered meanwhile.
            operations.append({"op": "test", "path": f"{pointer}/name", "value": component.name})
        else:  # stored by an earlier release
            pointer = f"/spec/services/{component.name}"
        operations.append({"op": "add", "path": f"{pointer}/replicas", "value": wanted})
    return Patch(builders.target(stored), operations, type=PatchType.JSON)


def _status_write(
    graph: Graph, component: GraphComponent, present: ChildObject, now: float
) -> Iterator[Intent]:
    wanted, status = _wanted_replicas(component, present), mapping(present.status)
    desired: Body = {"replicas": wanted, "selector": selector(graph, component)}
    if any(status.get(key) != value for key, value in desired.items()):
        if "replicas" in status and status["replicas"] != wanted:
            desired["lastScaleTime"] = rfc3339(now)
        yield Status(target(adapter(graph, component)), {"status": desired})


def _wanted_replicas(component: GraphComponent, present: ChildObject) -> int:
    wanted: int = mapping(present.spec).get("replicas", component.replicas)
    return wanted


def _existing(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> ChildObject | None:
    return snapshot.children.get((ScalingAdapter.KIND.name, naming.child_object(graph, component)))
