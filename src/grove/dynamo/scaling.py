"""Components that autoscalers scale: each has an adapter, made with the component's count. From then on the
adapter's count is the component's."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.intents import Create, Delete, Intent, Patch, PatchType, Status, Target
from grove.dynamo import naming
from grove.dynamo.adapters import ScalingAdapter, adapter, selector
from grove.dynamo.graph import Body, Component, Graph
from grove.dynamo.objects import owned, target
from grove.dynamo.seen import Companion, Seen
from grove.dynamo.types import DynamoGraphDeployment
from grove.plan.moments import rfc3339
from grove.rules.model import FieldError, forbidden

_ADAPTER, _GRAPH = ScalingAdapter.KIND, DynamoGraphDeployment.KIND
_ACCOUNT = "system:serviceaccount:"


def writes(graph: Graph, seen: Seen, now: float) -> Iterator[Intent]:
    """Adapters where they are asked for, none elsewhere, and the counts that they ask for."""
    for component in graph.components:
        present = _present(graph, component, seen)
        body = adapter(graph, component)
        if not component.adapted:
            if present is not None and any(
                each.uid == graph.uid for each in present.metadata.owner_references
            ):
                yield Delete(target(body), uid=present.metadata.uid)
        elif present is None:
            yield Create(target(body), owned(graph, body))
        else:
            yield from _followed(graph, component, present, now)


def moves(graph: Graph, seen: Seen) -> Iterator[tuple[Component, int]]:
    """The components that their adapters want to have another count, with that count."""
    for component in graph.components:
        present = _present(graph, component, seen)
        if component.adapted and present is not None:
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
        if known is None or not (known.adapted or component.adapted):
            continue
        if known.replicas != component.replicas:
            name = f"{_ADAPTER.name} {naming.child(new, component)}"
            why = f"{known.replicas} is what {name} says: scale that one, and leave replicas out here"
            yield forbidden(f"{component.path}.replicas", why)


def _followed(graph: Graph, component: Component, present: Companion, now: float) -> Iterator[Intent]:
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


def _present(graph: Graph, component: Component, seen: Seen) -> Companion | None:
    return seen.children.get((_ADAPTER.name, naming.child(graph, component)))


def _mapping(value: object) -> Body:
    return value if isinstance(value, dict) else {}
