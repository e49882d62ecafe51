"""Validation of the endpoint picker of a graph (type `epp`)."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, forbidden, invalid, required
from grove.dynamo.admission.field_paths import is_alpha
from grove.dynamo.context import GraphContext
from grove.dynamo.graph import EPP, Graph, GraphComponent, PickerConfig
from grove.dynamo.render.endpoint_picker import POOL_GROUP, POOL_VERSION


def errors(graph: Graph) -> Iterator[FieldError]:
    """Errors of endpoint pickers and of their configuration."""
    for component in graph.components:
        path = f"{component.path}.eppConfig"
        if component.type == EPP:
            yield from _picker(component)
            yield from _config(path, component.picker or PickerConfig())
        elif component.picker is not None:
            yield forbidden(path, f"only allowed for type {EPP}")
    for second in [each for each in graph.components if each.type == EPP][1:]:
        yield forbidden(_type(second), "a graph has at most one endpoint picker")


def cluster_errors(graph: Graph, known: GraphContext) -> Iterator[FieldError]:
    """Errors of a picker in a cluster without InferencePools."""
    for component in graph.components:
        if component.type == EPP and not known.inference_pools:
            why = f"needs InferencePools, and the cluster does not serve {POOL_VERSION}"
            yield forbidden(_type(component), f"{why}: install the CRDs of API group {POOL_GROUP}")


def _type(component: GraphComponent) -> str:
    return f"{component.path}.{'componentType' if is_alpha(component) else 'type'}"


def _picker(component: GraphComponent) -> Iterator[FieldError]:
    if component.replicas != 1:
        yield invalid(f"{component.path}.replicas", component.replicas, "an endpoint picker has one replica")
    if component.multinode:
        yield forbidden(f"{component.path}.multinode", "an endpoint picker runs on one node")
    if component.has_scaling_adapter:
        yield forbidden(f"{component.path}.scalingAdapter", "an endpoint picker has one replica")


def _config(path: str, picker: PickerConfig) -> Iterator[FieldError]:
    if picker.config is None and picker.config_map is None:
        yield required(path, "set config, or configMapRef to a ConfigMap of yours")
    elif picker.config is not None and picker.config_map is not None:
        yield forbidden(f"{path}.configMapRef", "config is set as well: remove one of the two")
    elif picker.config_map == "":
        yield required(f"{path}.configMapRef.name")
