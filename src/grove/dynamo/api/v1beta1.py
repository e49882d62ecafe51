"""The components of a DynamoGraphDeployment in v1beta1."""

from __future__ import annotations

from grove.api.wire import Int32, Wire
from grove.dynamo.api.common import (
    Anything,
    CompilationCache,
    ComponentTopology,
    EppConfig,
    ModelRef,
    Multinode,
    Quantity,
)


class PodTemplate(Wire, frozen=True):
    """The pods of a component. The container `main` runs Dynamo; other containers are sidecars."""

    metadata: Anything | None = None
    """Labels and annotations of the pods."""
    spec: Anything | None = None
    """A PodSpec."""


class BetaScalingAdapter(Wire, frozen=True):
    """If present, autoscalers scale the component (v1beta1)."""


class BetaComponent(Wire, frozen=True):
    """A component of the graph (v1beta1)."""

    name: str = ""
    """Name of the component, unique in the graph without regard to case."""
    type: str = ""
    """`frontend`, `worker`, `prefill`, `decode`, `planner` or `epp`; decides ports, probes and variables."""
    pod_template: PodTemplate | None = None
    """Template of the pods."""
    replicas: Int32 | None = None
    """Desired replicas. Default: 1."""
    min_available: Int32 | None = None
    """Replicas without which the component does not work. Default: 1. Immutable."""
    multinode: Multinode | None = None
    """Makes each replica span several nodes."""
    shared_memory_size: Quantity | None = None
    """Size of `/dev/shm`. Default: 8Gi; 0: none."""
    compilation_cache: CompilationCache | None = None
    """A PersistentVolumeClaim that keeps the output of compilers."""
    model_ref: ModelRef | None = None
    """The model that the component serves."""
    global_dynamo_namespace: bool = False
    """Whether the component is discovered in the Dynamo namespace `dynamo` that all graphs share."""
    runtime_version_override: str = ""
    """The version of Dynamo in the image, if the image tag does not contain it."""
    topology_constraint: ComponentTopology | None = None
    """The topology domain that its pods must fit into. Immutable."""
    scaling_adapter: BetaScalingAdapter | None = None
    """Lets autoscalers scale the component, through a DynamoGraphDeploymentScalingAdapter."""
    frontend_sidecar: str | None = None
    """Name of the sidecar container that is a frontend."""
    epp_config: EppConfig | None = None
    """The configuration of an endpoint picker; required for type `epp`, and only allowed there."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""
