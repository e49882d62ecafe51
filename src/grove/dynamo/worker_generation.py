"""Generations of workers. While workers are replaced, old and new ones are found under names of their own,
and no request goes from one kind to the other; frontends look for both by what the names have in common."""

from __future__ import annotations

import hashlib

import msgspec

from grove.dynamo.graph import Graph, GraphComponent

_LENGTH = 8
_PARTS = (
    *("name", "nodes", "main", "sidecars", "pod", "pod_labels", "pod_annotations", "shared_memory", "cache"),
    *("frontend", "everywhere"),
)
"""What makes another worker of a component. What this layer adds does not: a newer operator replaces nobody.
"""


def generation(graph: Graph) -> str:
    """Of all workers of a deployment, as users wrote them; empty if they are not told from each other."""
    if graph.ignores_generations:
        return ""
    workers = sorted((each for each in graph.components if each.runs_engine), key=lambda each: each.name)
    written = [{part: getattr(each, part) for part in _PARTS} for each in workers]
    text = msgspec.json.encode([graph.framework, graph.env, written], order="sorted")
    return hashlib.sha256(text).hexdigest()[:_LENGTH]


def runtime_namespace(graph: Graph, component: GraphComponent, known: str) -> str:
    """Where Dynamo finds a component, if its workers are of that generation."""
    own = graph.dynamo_namespace(component)
    return f"{own}-{known}" if component.runs_engine and known else own
