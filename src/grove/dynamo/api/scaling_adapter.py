"""DynamoGraphDeploymentScalingAdapter: what autoscalers scale in the place of a component."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import ObjectMeta
from grove.api.types.kind import AGE, Column, Kind, ScaleSubresource
from grove.api.wire import Int32, Wire, always, facet
from grove.dynamo import keys, naming
from grove.dynamo.api.common import BETA, NVIDIA
from grove.dynamo.graph import Body, Graph, GraphComponent


class AdapterTarget(Wire, frozen=True):
    """The component that is scaled."""

    name: str = always("")
    """The DynamoGraphDeployment."""
    component_name: str = ""
    """Its component (v1beta1)."""
    service_name: str = ""
    """The same in v1alpha1."""


class AdapterSpec(Wire, frozen=True):
    """How many replicas a component has."""

    replicas: Annotated[Int32, facet(minimum=0)] = always(0)
    """How many; the component follows."""
    dgd_ref: AdapterTarget = AdapterTarget()
    """The component."""


class AdapterStatus(Wire, frozen=True):
    """What autoscalers are told."""

    replicas: Int32 = 0
    """How many there are to be."""
    selector: str = ""
    """Selects the component's pods."""
    last_scale_time: str = ""
    """When the component was last scaled."""


class ScalingAdapter(Wire, frozen=True):
    """What autoscalers scale in the place of a component that has `scalingAdapter`. The operator makes it."""

    KIND: ClassVar = Kind(
        NVIDIA,
        "DynamoGraphDeploymentScalingAdapter",
        "dynamographdeploymentscalingadapters",
        short_names=("dgdsa",),
        scale=ScaleSubresource(".status.selector"),
        version=BETA,
        columns=(
            Column("DGD", "string", ".spec.dgdRef.name"),
            Column("Service", "string", ".spec.dgdRef.serviceName"),
            Column("Replicas", "integer", ".status.replicas"),
            AGE,
        ),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: AdapterSpec = AdapterSpec()
    """How many replicas, of what."""
    status: AdapterStatus = AdapterStatus()
    """What autoscalers are told."""


def adapter(graph: Graph, component: GraphComponent) -> Body:
    """The adapter of a component, as it is made."""
    kind, labels = ScalingAdapter.KIND, {keys.GRAPH: graph.name, keys.COMPONENT: component.name}
    target = {"name": graph.name, "componentName": component.name, "serviceName": component.name}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": naming.child_object(graph, component),
            "namespace": graph.namespace,
            "labels": labels,
        },
        "spec": {"replicas": component.replicas, "dgdRef": target},
    }


def selector(graph: Graph, component: GraphComponent) -> str:
    """Selects the pods of a component."""
    return f"{keys.COMPONENT}={component.name},{keys.GRAPH}={graph.name}"
