"""The services of a DynamoGraphDeployment in v1alpha1, and its claims."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.wire import Int32, KubernetesSchema, Wire
from grove.dynamo.api.common import Anything, ComponentTopology, EnvVar, ModelRef, Multinode, Probe, Quantity


class Amounts(Wire, frozen=True):
    """Resources of the main container (v1alpha1)."""

    cpu: Quantity | None = None
    """CPUs."""
    memory: Quantity | None = None
    """Memory."""
    gpu: Quantity | None = None
    """GPUs, of `gpuType`."""
    gpu_type: str = ""
    """The resource that `gpu` counts; `nvidia.com/gpu` without it."""
    custom: dict[str, Quantity] = field(default_factory=dict)
    """Any other resource."""


class AlphaResources(Wire, frozen=True):
    """Resources of the main container (v1alpha1)."""

    requests: Amounts | None = None
    """What is asked for."""
    limits: Amounts | None = None
    """What is the most."""
    claims: tuple[Annotated[object, KubernetesSchema("io.k8s.api.core.v1.ResourceClaim")], ...] = ()
    """Claims of the pod that the container uses."""


class Mount(Wire, frozen=True):
    """A volume of the main container (v1alpha1)."""

    name: str = ""
    """A volume of the pod, or a PersistentVolumeClaim."""
    mount_point: str = ""
    """Where."""
    use_as_compilation_cache: bool = False
    """Whether compilers keep there what they made."""


class SharedMemory(Wire, frozen=True):
    """`/dev/shm` (v1alpha1)."""

    disabled: bool = False
    """Whether there is none."""
    size: Quantity | None = None
    """How much."""


class ExtraPodMetadata(Wire, frozen=True):
    """Metadata of the pods (v1alpha1)."""

    labels: dict[str, str] = field(default_factory=dict)
    """Labels."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations."""


class ScalingSwitch(Wire, frozen=True):
    """Whether autoscalers scale a service (v1alpha1)."""

    enabled: bool = False
    """Whether they do, through a DynamoGraphDeploymentScalingAdapter."""


class FrontendSidecar(Wire, frozen=True):
    """A frontend in each pod of a service (v1alpha1)."""

    image: str = ""
    """Its image."""
    args: tuple[str, ...] = ()
    """Instead of the usual ones."""
    env_from_secret: str = ""
    """A Secret whose keys become variables of it."""
    envs: tuple[EnvVar, ...] = ()
    """Its variables."""


class AlphaService(Wire, frozen=True):
    """A part of the graph (v1alpha1)."""

    service_name: str = ""
    """Ignored: the key is the name."""
    component_type: str = ""
    """`frontend`, `worker`, `planner` or another word."""
    sub_component_type: str = ""
    """`prefill` or `decode`, of a worker."""
    replicas: Int32 | None = None
    """How many; 1 without it."""
    min_available: Int32 | None = None
    """How many must run for the component to be of use; 1 without it. Immutable."""
    multinode: Multinode | None = None
    """Makes each replica span several nodes."""
    resources: AlphaResources | None = None
    """Resources of the main container."""
    envs: tuple[EnvVar, ...] = ()
    """Variables of the main container."""
    env_from_secret: str = ""
    """A Secret whose keys become variables of the main container."""
    extra_pod_spec: Anything | None = None
    """A PodSpec, with the main container as `mainContainer`."""
    extra_pod_metadata: ExtraPodMetadata | None = None
    """Metadata of the pods."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of what is made for the service."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of what is made for the service."""
    liveness_probe: Probe | None = None
    """Of the main container."""
    readiness_probe: Probe | None = None
    """Of the main container."""
    volume_mounts: tuple[Mount, ...] = ()
    """Volumes of the main container."""
    shared_memory: SharedMemory | None = None
    """`/dev/shm`; 8Gi without it."""
    model_ref: ModelRef | None = None
    """The model that is served."""
    global_dynamo_namespace: bool = False
    """Whether the component is found in the namespace `dynamo` of all deployments."""
    topology_constraint: ComponentTopology | None = None
    """How close together its pods must sit. Immutable."""
    autoscaling: Anything | None = None
    """Ignored, with a warning."""
    dynamo_namespace: str = ""
    """Ignored, with a warning."""
    ingress: Anything | None = None
    """Not supported, unless switched off."""
    scaling_adapter: ScalingSwitch | None = None
    """Lets autoscalers scale the service."""
    frontend_sidecar: FrontendSidecar | None = None
    """A frontend beside the main container."""
    gpu_memory_service: Anything | None = None
    """Not supported, unless switched off."""
    failover: Anything | None = None
    """Not supported, unless switched off."""
    checkpoint: Anything | None = None
    """Not supported, unless switched off."""
    epp_config: Anything | None = None
    """Not supported."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""


class AlphaVolumeClaim(Wire, frozen=True):
    """A PersistentVolumeClaim of the deployment (v1alpha1)."""

    name: str = ""
    """Its name."""
    create: bool = False
    """Whether to make it if it is not there."""
    storage_class: str = ""
    """The StorageClass."""
    size: Quantity | None = None
    """How much."""
    volume_access_mode: str = ""
    """For example `ReadWriteMany`."""
