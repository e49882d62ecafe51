"""DynamoGraphDeployment as users write it, in either of its versions.

`v1alpha1` has `services` by name, `v1beta1` a list of `components`. One schema serves both versions, so that
no conversion is needed between them; which one an object is written in shows from its shape.
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

    components: tuple[BetaComponent, ...] = ()
    """The components (v1beta1)."""
    services: dict[str, AlphaService] = field(default_factory=dict)
    """The components by name (v1alpha1)."""
    backend_framework: str = ""
    """`vllm`, `sglang` or `trtllm`, where the commands do not tell. Immutable."""
    env: tuple[EnvVar, ...] = ()
    """Variables of every component (v1beta1)."""
    envs: tuple[EnvVar, ...] = ()
    """Variables of every component (v1alpha1)."""
    pvcs: tuple[AlphaVolumeClaim, ...] = ()
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
