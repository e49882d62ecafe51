"""The type DynamoGraphDeployment in both of its versions.

`v1alpha1` has a map of `services`, `v1beta1` a list of `components`. One type has the fields of both: those
that an object uses show which version it is written in. Each version has a schema of its own.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from grove.api.meta import ObjectMeta
from grove.api.types.kind import AGE, Column, Kind
from grove.api.wire import Wire, always
from grove.dynamo.api.common import BETA, NVIDIA, Anything, DeploymentTopology, EnvVar
from grove.dynamo.api.status import GraphStatus
from grove.dynamo.api.v1alpha1 import AlphaService, AlphaVolumeClaim
from grove.dynamo.api.v1beta1 import BetaComponent

PARALLEL, SEQUENTIAL = "Parallel", "Sequential"
"""The types of a restart strategy."""


class RestartStrategy(Wire, frozen=True):
    """The order in which components restart."""

    type: str = ""
    """`Sequential`, one component after another, or `Parallel`."""
    order: tuple[str, ...] = ()
    """The names of all components in the order of their restart. Default: alphabetical."""


class Restart(Wire, frozen=True):
    """Requests a restart of the components."""

    id: str = ""
    """Any string; a new value starts a restart."""
    strategy: RestartStrategy | None = None
    """The order of the restart."""


class GraphSpec(Wire, frozen=True):
    """The components of an inference graph, and their common settings."""

    components: tuple[BetaComponent, ...] = ()
    """The components (v1beta1)."""
    services: dict[str, AlphaService] = field(default_factory=dict)
    """The components by name (v1alpha1)."""
    backend_framework: str = ""
    """`vllm`, `sglang` or `trtllm`, for components whose command does not show the engine. Immutable."""
    env: tuple[EnvVar, ...] = ()
    """Environment variables of all components (v1beta1)."""
    envs: tuple[EnvVar, ...] = ()
    """Environment variables of all components (v1alpha1)."""
    pvcs: tuple[AlphaVolumeClaim, ...] = ()
    """PersistentVolumeClaims of the graph (v1alpha1)."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of all objects that the operator creates for the graph."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of all objects that the operator creates for the graph."""
    priority_class_name: str = ""
    """PriorityClass of the pods."""
    topology_constraint: DeploymentTopology | None = None
    """The topology domain that all pods of the graph must fit into. Immutable."""
    restart: Restart | None = None
    """A new `id` replaces the pods of all components."""
    provider_override: Anything | None = None
    """Not supported."""
    experimental: Anything | None = None
    """Not supported."""


class DynamoGraphDeployment(Wire, frozen=True):
    """An inference graph of NVIDIA Dynamo: components that run together."""

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
    """The components and their common settings."""
    status: GraphStatus = GraphStatus()
    """The observed state."""
