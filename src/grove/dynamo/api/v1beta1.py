"""The components of a DynamoGraphDeployment in v1beta1."""

from __future__ import annotations

from grove.api.wire import Int32, Wire
from grove.dynamo.api.common import (
    Anything,
    CompilationCache,
    ComponentTopology,
    ModelRef,
    Multinode,
    Quantity,
)


class PodTemplate(Wire, frozen=True):
    """Pods of a component; the container `main` runs Dynamo, others are beside it."""

    metadata: Anything | None = None
    """Labels and annotations of the pods."""
    spec: Anything | None = None
    """A PodSpec."""


class BetaScalingAdapter(Wire, frozen=True):
    """Being there is enough: autoscalers scale the component (v1beta1)."""


class BetaComponent(Wire, frozen=True):
    """A part of the graph (v1beta1)."""

    name: str = ""
    """Unique in the graph, whatever its case."""
    type: str = ""
    """`frontend`, `worker`, `prefill`, `decode` or `planner`; it decides ports, probes and variables."""
    pod_template: PodTemplate | None = None
    """The pods."""
    replicas: Int32 | None = None
    """How many; 1 without it."""
    min_available: Int32 | None = None
    """How many must run for the component to be of use; 1 without it. Immutable."""
    multinode: Multinode | None = None
    """Makes each replica span several nodes."""
    shared_memory_size: Quantity | None = None
    """`/dev/shm`; 8Gi without it, none with 0."""
    compilation_cache: CompilationCache | None = None
    """A claim that keeps what compilers made."""
    model_ref: ModelRef | None = None
    """The model that is served."""
    global_dynamo_namespace: bool = False
    """Whether the component is found in the namespace `dynamo` of all deployments."""
    runtime_version_override: str = ""
    """The version of Dynamo in the image, where its tag does not tell."""
    topology_constraint: ComponentTopology | None = None
    """How close together its pods must sit. Immutable."""
    scaling_adapter: BetaScalingAdapter | None = None
    """Lets autoscalers scale the component, through a DynamoGraphDeploymentScalingAdapter."""
    frontend_sidecar: str | None = None
    """The container that is a frontend beside the main one."""
    epp_config: Anything | None = None
    """Not supported."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""
