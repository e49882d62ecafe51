"""Types that both versions of a DynamoGraphDeployment share."""

from __future__ import annotations

from typing import Annotated

from grove.api.wire import Int32, KubernetesSchema, Wire

NVIDIA = "nvidia.com"
ALPHA, BETA = "v1alpha1", "v1beta1"
MAX_COMPONENTS = 25
MOST_NODES = 10_000
"""The most nodes per replica. Some engines get a list with the host name of each."""

MOST_CONFIG_LEVELS = 32
"""The most levels of objects and lists in the configuration of an endpoint picker: it is written as YAML."""

Anything = Annotated[object, KubernetesSchema("io.k8s.apimachinery.pkg.runtime.RawExtension")]
"""An object whose schema Kubernetes defines, or that has no schema."""
Quantity = Annotated[object, KubernetesSchema("io.k8s.apimachinery.pkg.api.resource.Quantity")]
EnvVar = Annotated[object, KubernetesSchema("io.k8s.api.core.v1.EnvVar")]
Probe = Annotated[object, KubernetesSchema("io.k8s.api.core.v1.Probe")]


class DeploymentTopology(Wire, frozen=True):
    """The topology, and the domain that all pods of the graph must fit into."""

    cluster_topology_name: str = ""
    """Name of the ClusterTopology (v1beta1)."""
    topology_profile: str = ""
    """Name of the ClusterTopology (v1alpha1)."""
    topology_name: str = ""
    """Name of the ClusterTopology (both versions)."""
    pack_domain: str = ""
    """The domain, for example `zone`. Without it only the constraints of components apply."""


class ComponentTopology(Wire, frozen=True):
    """The domain that a component must fit into: each replica if it is multi-node, else all of its pods."""

    pack_domain: str = ""
    """The domain, for example `rack`; the domain of the graph or a narrower one."""


class MultinodeRole(Wire, frozen=True):
    """Overrides for one role of a multi-node component."""

    provider_override: Anything | None = None
    """Not supported."""


class Multinode(Wire, frozen=True):
    """Makes each replica of a component span several nodes."""

    node_count: Int32 | None = None
    """Nodes per replica. Default: 2."""
    leader: MultinodeRole | None = None
    """Not supported."""
    worker: MultinodeRole | None = None
    """Not supported."""


class CompilationCache(Wire, frozen=True):
    """A PersistentVolumeClaim that keeps the output of compilers."""

    pvc_name: str = ""
    """Name of the PersistentVolumeClaim."""
    mount_path: str = ""
    """Mount path. Required except for vLLM, which has a default."""


class ConfigMapKey(Wire, frozen=True):
    """A key of a ConfigMap."""

    name: str = ""
    """Name of the ConfigMap."""
    key: str = ""
    """The key. Default: `epp-config-dynamo.yaml`."""
    optional: bool | None = None
    """Ignored: the configuration is required."""


class EppConfig(Wire, frozen=True):
    """The configuration of an endpoint picker: one of the two fields."""

    config_map_ref: ConfigMapKey | None = None
    """A ConfigMap with the configuration."""
    config: Anything | None = None
    """An EndpointPickerConfig of the Gateway API Inference Extension."""


class ModelRef(Wire, frozen=True):
    """The model that a component serves."""

    name: str = ""
    """Name of the model, for example `Qwen/Qwen3-0.6B`."""
    revision: str = ""
    """Revision of the model."""
