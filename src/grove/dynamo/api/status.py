"""The status of a DynamoGraphDeployment."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.wire import Int32, Int64, Wire, always, facet

READY = "Ready"
"""The condition that reports whether all components are ready, and why a graph cannot be reconciled."""
LEVELS = "TopologyLevelsAvailable"
"""The condition that reports whether the domains of the topology constraints exist."""

WAITING = f"grove.io/{ConditionType.WAITING}"
"""The condition of the PodCliqueSet that reports why pods wait."""
NOT_ADMITTED = "kueue.x-k8s.io/NotAdmitted"
"""The condition that reports why Kueue does not admit pods."""


class ComponentStatus(Wire, frozen=True):
    """The observed state of a component."""

    component_kind: str = ""
    """Kind of the object that runs the component."""
    component_names: tuple[str, ...] = ()
    """Name of that object."""
    runtime_namespace: str = ""
    """The Dynamo namespace in which the component is discovered."""
    replicas: Int32 = always(0)
    """Replicas that exist."""
    updated_replicas: Int32 = always(0)
    """Replicas of the latest template."""
    ready_replicas: Int32 | None = None
    """Replicas that are ready."""
    available_replicas: Int32 | None = None
    """Replicas that are available."""
    scheduled_replicas: Int32 | None = None
    """Replicas that are scheduled."""


class AppliedTopology(Wire, frozen=True):
    """A topology constraint that is applied to a workload."""

    component: str = ""
    """The component; empty for the whole graph."""
    pack_domain: str = always("")
    """The topology domain."""
    topology_name: str = ""
    """The topology that the domain is a level of."""
    applied_to: str = always("")
    """Kind and name of the object that carries the constraint."""


class RestartStatus(Wire, frozen=True):
    """Progress of a restart."""

    observed_id: str = field(name="observedID", default="")
    """The `id` of the restart."""
    phase: str = ""
    """`Restarting` or `Completed`."""
    in_progress: tuple[str, ...] = ()
    """Components that are restarting now."""


class GraphStatus(Wire, frozen=True):
    """The observed state of a DynamoGraphDeployment."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last reconciled."""
    state: Annotated[str, facet(enum=["initializing", "pending", "successful", "failed"])] = always(
        "initializing"
    )
    """`pending`, `successful` or `failed`."""
    conditions: tuple[Condition, ...] = ()
    """`Ready`, `TopologyLevelsAvailable`, `UnsupportedFields`, and those of the PodCliqueSet."""
    components: dict[str, ComponentStatus] = field(default_factory=dict)
    """The observed state of each component, by name."""
    restart: RestartStatus | None = None
    """The latest restart."""
    applied_topology_constraints: tuple[AppliedTopology, ...] = ()
    """The topology constraints that are applied to workloads."""
