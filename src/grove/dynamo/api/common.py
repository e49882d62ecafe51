"""What both versions of a DynamoGraphDeployment have in common."""

from __future__ import annotations

from typing import Annotated

from grove.api.wire import Int32, KubernetesSchema, Wire

NVIDIA = "nvidia.com"
ALPHA, BETA = "v1alpha1", "v1beta1"
MAX_COMPONENTS = 25
MOST_NODES = 10_000
"""That one replica may span. Some engines get a list with the name of each."""

Anything = Annotated[object, KubernetesSchema("io.k8s.apimachinery.pkg.runtime.RawExtension")]
"""An object that Kubernetes, or nobody yet, defines here."""
Quantity = Annotated[object, KubernetesSchema("io.k8s.apimachinery.pkg.api.resource.Quantity")]
EnvVar = Annotated[object, KubernetesSchema("io.k8s.api.core.v1.EnvVar")]
Probe = Annotated[object, KubernetesSchema("io.k8s.api.core.v1.Probe")]


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
