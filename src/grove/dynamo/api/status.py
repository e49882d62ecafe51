"""The status of a DynamoGraphDeployment."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.meta import Condition
from grove.api.wire import Int32, Int64, Wire, always, facet

LEVELS = "TopologyLevelsAvailable"
"""The condition that tells whether the domains of the constraints exist."""


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
