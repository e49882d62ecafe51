"""Generations of workers: a hash of the worker templates, which is part of their Dynamo namespace.

During a rollout, old and new workers are discovered in different Dynamo namespaces, so that no request goes
from one generation to the other; frontends discover both by the common prefix."""

from __future__ import annotations

import hashlib

import msgspec

from grove.dynamo.graph import Graph, GraphComponent

_LENGTH = 8
_PARTS = (
    *("name", "nodes", "main", "sidecars", "pod", "pod_labels", "pod_annotations", "shared_memory", "cache"),
    *("frontend", "everywhere"),
)
"""The fields that make up a generation. Fields that the operator adds are not among them, so that an
upgrade of the operator replaces no pods."""


def generation(graph: Graph) -> str:
    """The generation of all workers of a graph; empty if the graph ignores generations."""
    if graph.ignores_generations:
        return ""
    workers = sorted((each for each in graph.components if each.runs_engine), key=lambda each: each.name)
    written = [{part: getattr(each, part) for part in _PARTS} for each in workers]
    text = msgspec.json.encode([graph.framework, graph.env, written], order="sorted")
    return hashlib.sha256(text).hexdigest()[:_LENGTH]


def runtime_namespace(graph: Graph, component: GraphComponent, known: str) -> str:
    """The Dynamo namespace of a component whose workers are of the generation `known`."""
    own = graph.dynamo_namespace(component)
    return f"{own}-{known}" if component.runs_engine and known else own
