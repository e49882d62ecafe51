"""The type DynamoGraphDeploymentScalingAdapter: the scale target of autoscalers for a component."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import ObjectMeta
from grove.api.types.kind import AGE, Column, Kind, ScaleSubresource
from grove.api.wire import Int32, Wire, always, facet
from grove.dynamo import keys, naming
from grove.dynamo.api.common import BETA, NVIDIA
from grove.dynamo.graph import Body, Graph, GraphComponent


class AdapterTarget(Wire, frozen=True):
    """The component that the adapter scales."""

    name: str = always("")
    """Name of the DynamoGraphDeployment."""
    component_name: str = ""
    """Name of the component (v1beta1)."""
    service_name: str = ""
    """Name of the component (v1alpha1)."""


class AdapterSpec(Wire, frozen=True):
    """The desired replicas of a component."""

    replicas: Annotated[Int32, facet(minimum=0)] = always(0)
    """Desired replicas; the operator copies the number to the component."""
    dgd_ref: AdapterTarget = AdapterTarget()
    """The component that the adapter scales."""


class AdapterStatus(Wire, frozen=True):
    """The state that autoscalers read."""

    replicas: Int32 = 0
    """Replicas of the component."""
    selector: str = ""
    """Label selector of the component's pods."""
    last_scale_time: str = ""
    """Time at which the component was last scaled."""


class ScalingAdapter(Wire, frozen=True):
    """The scale target of autoscalers for a component with `scalingAdapter`. Created by the operator."""

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
    """The component and its desired replicas."""
    status: AdapterStatus = AdapterStatus()
    """The observed state."""


def adapter(graph: Graph, component: GraphComponent) -> Body:
    """The adapter to create for a component."""
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
    """The label selector of the pods of a component."""
    return f"{keys.COMPONENT}={component.name},{keys.GRAPH}={graph.name}"
