"""DynamoGraphDeployment as users write it, in either of its versions.

`v1alpha1` has `services` by name, `v1beta1` a list of `components`. One schema serves both versions, so that
no conversion is needed between them; which one an object is written in shows from its shape.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from grove.api.kind import AGE, Column, Kind
from grove.api.meta import Condition, ObjectMeta
from grove.api.wire import Foreign, Int32, Int64, Wire, always, facet

NVIDIA = "nvidia.com"
ALPHA, BETA = "v1alpha1", "v1beta1"
MOST_COMPONENTS = 25

Anything = Annotated[object, Foreign("io.k8s.apimachinery.pkg.runtime.RawExtension")]
"""An object that Kubernetes, or nobody yet, defines here."""
Quantity = Annotated[object, Foreign("io.k8s.apimachinery.pkg.api.resource.Quantity")]
EnvVar = Annotated[object, Foreign("io.k8s.api.core.v1.EnvVar")]
Probe = Annotated[object, Foreign("io.k8s.api.core.v1.Probe")]


class DeploymentTopology(Wire, frozen=True):
    """Which topology is meant, and the domain that the whole deployment must fit into."""

    cluster_topology_name: str = ""
    """The ClusterTopology (v1beta1)."""
    topology_profile: str = ""
    """The same in v1alpha1."""
    topology_name: str = ""
    """The same, in either version."""
    pack_domain: str = ""
    """The domain, for example `zone`; without it only services are constrained."""


class ComponentTopology(Wire, frozen=True):
    """The domain that a component must fit into: each replica of a multi-node one, else all its pods."""

    pack_domain: str = ""
    """The domain, for example `rack`; as broad as the deployment's, or narrower."""


class MultinodeRole(Wire, frozen=True):
    """One role of a multi-node component."""

    provider_override: Anything | None = None
    """Not supported."""


class Multinode(Wire, frozen=True):
    """A component of which each replica spans several nodes."""

    node_count: Int32 | None = None
    """Nodes of one replica; 2 without it."""
    leader: MultinodeRole | None = None
    """Not supported."""
    worker: MultinodeRole | None = None
    """Not supported."""


class CompilationCache(Wire, frozen=True):
    """A claim that keeps what compilers made."""

    pvc_name: str = ""
    """The PersistentVolumeClaim."""
    mount_path: str = ""
    """Where; vLLM has a path of its own."""


class ModelRef(Wire, frozen=True):
    """The model that a component serves."""

    name: str = ""
    """For example `Qwen/Qwen3-0.6B`."""
    revision: str = ""
    """A revision of it."""


class PodTemplate(Wire, frozen=True):
    """Pods of a component; the container `main` runs Dynamo, others are beside it."""

    metadata: Anything | None = None
    """Labels and annotations of the pods."""
    spec: Annotated[object, Foreign("io.k8s.apimachinery.pkg.runtime.RawExtension")] | None = None
    """A PodSpec."""


class Component(Wire, frozen=True):
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
    scaling_adapter: Anything | None = None
    """Not supported."""
    frontend_sidecar: str = ""
    """Not supported."""
    epp_config: Anything | None = None
    """Not supported."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""


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


class Resources(Wire, frozen=True):
    """Resources of the main container (v1alpha1)."""

    requests: Amounts | None = None
    """What is asked for."""
    limits: Amounts | None = None
    """What is the most."""
    claims: tuple[Annotated[object, Foreign("io.k8s.api.core.v1.ResourceClaim")], ...] = ()
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


class Switch(Wire, frozen=True):
    """Something that may be there and switched off (v1alpha1)."""

    enabled: bool = False
    """Whether it is on."""


class Service(Wire, frozen=True):
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
    resources: Resources | None = None
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
    scaling_adapter: Anything | None = None
    """Not supported, unless switched off."""
    frontend_sidecar: Anything | None = None
    """Not supported."""
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


class Claim(Wire, frozen=True):
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


class RestartStrategy(Wire, frozen=True):
    """In which order components restart."""

    type: str = ""
    """`Sequential`, one component after another, or `Parallel`."""
    order: tuple[str, ...] = ()
    """Every component, in its turn; in alphabetical order without it."""


class Restart(Wire, frozen=True):
    """A restart of the components."""

    id: str = ""
    """Another value is another restart."""
    strategy: RestartStrategy | None = None
    """In which order."""


class GraphSpec(Wire, frozen=True):
    """The components of an inference service, and what they have in common."""

    components: tuple[Component, ...] = ()
    """The components (v1beta1)."""
    services: dict[str, Service] = field(default_factory=dict)
    """The components by name (v1alpha1)."""
    backend_framework: str = ""
    """`vllm`, `sglang` or `trtllm`, where the commands do not tell. Immutable."""
    env: tuple[EnvVar, ...] = ()
    """Variables of every component (v1beta1)."""
    envs: tuple[EnvVar, ...] = ()
    """Variables of every component (v1alpha1)."""
    pvcs: tuple[Claim, ...] = ()
    """Claims that the deployment brings (v1alpha1)."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of all that is made for the deployment."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of all that is made for the deployment."""
    priority_class_name: str = ""
    """The PriorityClass of the pods."""
    topology_constraint: DeploymentTopology | None = None
    """How close together the deployment must sit. Immutable."""
    restart: Restart | None = None
    """Replaces the pods of all components."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""


class ComponentStatus(Wire, frozen=True):
    """How a component fares."""

    component_kind: str = ""
    """What runs it."""
    component_names: tuple[str, ...] = ()
    """Its name there."""
    runtime_namespace: str = ""
    """The namespace in which Dynamo finds it."""
    replicas: Int32 = always(0)
    """Replicas that there are."""
    updated_replicas: Int32 = always(0)
    """Replicas made from the latest template."""
    ready_replicas: Int32 | None = None
    """Replicas that are ready."""
    available_replicas: Int32 | None = None
    """Replicas that are available."""
    scheduled_replicas: Int32 | None = None
    """Replicas that have nodes."""


class AppliedTopology(Wire, frozen=True):
    """A constraint as it was handed on."""

    component: str = ""
    """The component; empty for the whole deployment."""
    pack_domain: str = always("")
    """The domain."""
    topology_name: str = ""
    """The topology that it is a level of."""
    applied_to: str = always("")
    """Kind and name of what carries it."""


class RestartStatus(Wire, frozen=True):
    """How far a restart has come."""

    observed_id: str = field(name="observedID", default="")
    """The restart."""
    phase: str = ""
    """`Restarting` or `Completed`."""
    in_progress: tuple[str, ...] = ()
    """Components whose turn it is."""


class GraphStatus(Wire, frozen=True):
    """How the deployment fares."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last acted on."""
    state: Annotated[str, facet(enum=["initializing", "pending", "successful", "failed"])] = always(
        "initializing"
    )
    """`pending`, `successful` or `failed`."""
    conditions: tuple[Condition, ...] = ()
    """`Ready`, `TopologyLevelsAvailable`, `UnsupportedFields`, and those of the PodCliqueSet."""
    components: dict[str, ComponentStatus] = field(default_factory=dict)
    """How the components fare, by name."""
    restart: RestartStatus | None = None
    """The latest restart."""
    applied_topology_constraints: tuple[AppliedTopology, ...] = ()
    """The constraints that are in force."""


class DynamoGraphDeployment(Wire, frozen=True):
    """An inference service of NVIDIA Dynamo: a graph of components that run together."""

    KIND: ClassVar = Kind(
        NVIDIA,
        "DynamoGraphDeployment",
        "dynamographdeployments",
        short_names=("dgd",),
        version=BETA,
        columns=(
            Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Backend", "string", ".spec.backendFramework"),
            AGE,
        ),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: GraphSpec = GraphSpec()
    """The components."""
    status: GraphStatus = GraphStatus()
    """How they fare."""
