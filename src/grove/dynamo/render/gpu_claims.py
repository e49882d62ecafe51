"""Counts the GPUs that a component requests by resource claims, from its ResourceClaimTemplates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import engines

Templates = Mapping[str, Body]
"""The specs of the ResourceClaimTemplates of a namespace, by name."""
_COUNTED_FRAMEWORKS = ("vllm", "trtllm")
"""Engines whose multi-node flags depend on the number of GPUs per node."""


def template_names(graph: Graph) -> set[str]:
    """The templates that are needed to count GPUs."""
    return {
        name for each in graph.components if _needs_count(graph, each) for name, _ in _claimed_templates(each)
    }


def with_claimed_gpus(graph: Graph, templates: Templates) -> Graph:
    """The graph with the GPUs that its components get by claims."""
    components = tuple(
        replace(each, claimed_gpus=_count(each, templates)) if _needs_count(graph, each) else each
        for each in graph.components
    )
    return replace(graph, components=components)


def problems(graph: Graph, templates: Templates) -> Iterator[str]:
    """Messages for components whose GPUs cannot be counted."""
    for component in graph.components:
        if _needs_count(graph, component):
            found = list(_template_problems(component, templates))
            needs_gpus = engines.framework(graph, component) == "trtllm"
            if needs_gpus and not found and not _count(component, templates):
                why = "TensorRT-LLM starts one process for each GPU, and the resource claims request none"
                found.append(f"{component.path}: {why}: use a ResourceClaimTemplate with a count of GPUs")
            yield from found


def has_claims(component: GraphComponent) -> bool:
    """Whether the main container uses resource claims."""
    return bool((component.main.get("resources") or {}).get("claims"))


def _template_problems(component: GraphComponent, templates: Templates) -> Iterator[str]:
    for name, request in _claimed_templates(component):
        if name not in templates:
            yield f"{component.path}: ResourceClaimTemplate {name} does not exist: create it"
        elif None in _counts(templates[name], request):
            why = "does not request a fixed number of GPUs: set a count in every request"
            yield f"{component.path}: ResourceClaimTemplate {name} {why}"


def _needs_count(graph: Graph, component: GraphComponent) -> bool:
    engine = engines.framework(graph, component)
    return (
        component.multinode and engine in _COUNTED_FRAMEWORKS and not engines.gpus_by_resource(component.main)
    )


def _claimed_templates(component: GraphComponent) -> Iterator[tuple[str, str]]:
    """The templates of the main container's claims, each with the request that it uses; empty: all."""
    pod = {each.get("name"): each for each in component.pod.get("resourceClaims", ())}
    for claim in (component.main.get("resources") or {}).get("claims", ()):
        if name := pod.get(claim.get("name"), {}).get("resourceClaimTemplateName"):
            yield name, str(claim.get("request") or "").partition("/")[0]


def _count(component: GraphComponent, templates: Templates) -> int:
    return sum(
        count or 0
        for name, request in _claimed_templates(component)
        for count in _counts(templates.get(name, {}), request)
    )


def _counts(template: Body, request: str) -> list[int | None]:
    """The number of GPUs of each request; None if it is not fixed."""
    requests = (template.get("devices") or {}).get("requests") or ()
    return [_of_request(each) for each in requests if request in ("", each.get("name"))]


def _of_request(request: Body) -> int | None:
    if (exactly := request.get("exactly")) is not None:
        return _of_devices(exactly)
    found = {_of_devices(each) for each in request.get("firstAvailable") or ()}
    return found.pop() if len(found) == 1 else None if found else 0


def _of_devices(request: dict[str, Any]) -> int | None:
    if not engines.is_gpu(str(request.get("deviceClassName", ""))):
        return 0
    return None if request.get("allocationMode") == "All" else int(request.get("count") or 1)
