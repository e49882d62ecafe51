"""The services and PersistentVolumeClaims of a DynamoGraphDeployment in v1alpha1."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.wire import Int32, KubernetesSchema, Wire
from grove.dynamo.api.common import (
    Anything,
    ComponentTopology,
    EnvVar,
    EppConfig,
    ModelRef,
    Multinode,
    Probe,
    Quantity,
)


class Amounts(Wire, frozen=True):
    """Amounts of resources (v1alpha1)."""

    cpu: Quantity | None = None
    """CPUs."""
    memory: Quantity | None = None
    """Memory."""
    gpu: Quantity | None = None
    """GPUs, of the resource `gpuType`."""
    gpu_type: str = ""
    """The resource that `gpu` counts. Default: `nvidia.com/gpu`."""
    custom: dict[str, Quantity] = field(default_factory=dict)
    """Amounts of other resources, by name."""


class AlphaResources(Wire, frozen=True):
    """Resources of the main container (v1alpha1)."""

    requests: Amounts | None = None
    """Resource requests."""
    limits: Amounts | None = None
    """Resource limits."""
    claims: tuple[Annotated[object, KubernetesSchema("io.k8s.api.core.v1.ResourceClaim")], ...] = ()
    """Claims of the pod that the container uses."""


class Mount(Wire, frozen=True):
    """A volume mount of the main container (v1alpha1)."""

    name: str = ""
    """Name of a volume of the pod, or of a PersistentVolumeClaim."""
    mount_point: str = ""
    """Mount path."""
    use_as_compilation_cache: bool = False
    """Whether compilers keep their output there."""


class SharedMemory(Wire, frozen=True):
    """The shared memory volume `/dev/shm` (v1alpha1)."""

    disabled: bool = False
    """Whether to leave out the volume."""
    size: Quantity | None = None
    """Size of the volume. Default: 8Gi."""


class ExtraPodMetadata(Wire, frozen=True):
    """Metadata of the pods (v1alpha1)."""

    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the pods."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the pods."""


class ScalingSwitch(Wire, frozen=True):
    """Whether autoscalers scale a service (v1alpha1)."""

    enabled: bool = False
    """Whether to create a DynamoGraphDeploymentScalingAdapter for the service."""


class FrontendSidecar(Wire, frozen=True):
    """A frontend as a sidecar in each pod of a service (v1alpha1)."""

    image: str = ""
    """Image of the sidecar."""
    args: tuple[str, ...] = ()
    """Arguments. Default: those that start a frontend."""
    env_from_secret: str = ""
    """Name of a Secret whose keys become environment variables of the sidecar."""
    envs: tuple[EnvVar, ...] = ()
    """Environment variables of the sidecar."""


class AlphaService(Wire, frozen=True):
    """A component of the graph (v1alpha1)."""

    service_name: str = ""
    """Ignored: the key in the map is the name."""
    component_type: str = ""
    """`frontend`, `worker`, `planner`, `epp` or another word."""
    sub_component_type: str = ""
    """`prefill` or `decode`, for a worker."""
    replicas: Int32 | None = None
    """Desired replicas. Default: 1."""
    min_available: Int32 | None = None
    """Replicas without which the component does not work. Default: 1. Immutable."""
    multinode: Multinode | None = None
    """Makes each replica span several nodes."""
    resources: AlphaResources | None = None
    """Resources of the main container."""
    envs: tuple[EnvVar, ...] = ()
    """Environment variables of the main container."""
    env_from_secret: str = ""
    """Name of a Secret whose keys become environment variables of the main container."""
    extra_pod_spec: Anything | None = None
    """A PodSpec, with the main container as `mainContainer`."""
    extra_pod_metadata: ExtraPodMetadata | None = None
    """Metadata of the pods."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the objects that the operator creates for the service."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the objects that the operator creates for the service."""
    liveness_probe: Probe | None = None
    """Liveness probe of the main container."""
    readiness_probe: Probe | None = None
    """Readiness probe of the main container."""
    volume_mounts: tuple[Mount, ...] = ()
    """Volume mounts of the main container."""
    shared_memory: SharedMemory | None = None
    """The shared memory volume `/dev/shm`. Default: 8Gi."""
    model_ref: ModelRef | None = None
    """The model that the component serves."""
    global_dynamo_namespace: bool = False
    """Whether the component is discovered in the Dynamo namespace `dynamo` that all graphs share."""
    runtime_version_override: str = ""
    """The version of Dynamo in the image, if the image tag does not contain it."""
    topology_constraint: ComponentTopology | None = None
    """The topology domain that its pods must fit into. Immutable."""
    autoscaling: Anything | None = None
    """Ignored, with a warning."""
    dynamo_namespace: str = ""
    """Ignored, with a warning."""
    ingress: Anything | None = None
    """Not supported, unless switched off."""
    scaling_adapter: ScalingSwitch | None = None
    """Lets autoscalers scale the service."""
    frontend_sidecar: FrontendSidecar | None = None
    """A frontend as a sidecar of the main container."""
    gpu_memory_service: Anything | None = None
    """Not supported, unless switched off."""
    failover: Anything | None = None
    """Not supported, unless switched off."""
    checkpoint: Anything | None = None
    """Not supported, unless switched off."""
    epp_config: EppConfig | None = None
    """The configuration of an endpoint picker; required for type `epp`, and only allowed there."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""


class AlphaVolumeClaim(Wire, frozen=True):
    """A PersistentVolumeClaim of the graph (v1alpha1)."""

    name: str = ""
    """Name of the claim."""
    create: bool = False
    """Whether to create the claim if it does not exist."""
    storage_class: str = ""
    """StorageClass of a created claim."""
    size: Quantity | None = None
    """Requested storage of a created claim."""
    volume_access_mode: str = ""
    """Access mode of a created claim, for example `ReadWriteMany`."""
