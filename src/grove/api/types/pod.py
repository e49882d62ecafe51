"""Pods, and pod templates, as far as the product reads them. Cheap to decode: there are thousands of them.

Views are for reading. A pod is written from its template's raw JSON, so that nothing in it gets lost.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw, field

from grove.api.meta import Interned, ObjectMeta
from grove.api.wire import Wire


class PodPhase(StrEnum):
    """Where a pod is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class ClaimReference(Wire, frozen=True):
    """A claim of the pod that a container uses."""

    name: str
    request: str = ""


class Resources(Wire, frozen=True):
    """What a container, or a pod as a whole, asks for. Quantities are as written: `"500m"`, `2`."""

    requests: dict[str, str | int | float] = field(default_factory=dict)
    limits: dict[str, str | int | float] = field(default_factory=dict)
    claims: tuple[ClaimReference, ...] = ()


class EnvVar(Wire, frozen=True):
    """A variable, by its name only."""

    name: str = ""


class Container(Wire, frozen=True):
    """A container or init container."""

    name: str = ""
    env: tuple[EnvVar, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""


class Gate(Interned, frozen=True):
    """Keeps a pod from being scheduled until it is removed."""

    name: str


class PodClaim(Interned, frozen=True):
    """A claim of a pod: an existing one, or one made for it from a template."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class Toleration(Wire, frozen=True):
    """Lets a pod onto nodes with matching taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SchedulingGroup(Wire, frozen=True):
    """The PodGroup that a pod is placed with."""

    pod_group_name: str = ""


class PodSpecView(Wire, frozen=True):
    """A pod's spec, or a template's."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Gate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    affinity: Raw = Raw()
    topology_spread_constraints: tuple[Raw, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    resources: Resources | None = None
    overhead: dict[str, str | int | float] = field(default_factory=dict)
    priority: int = 0
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None


class Terminated(Wire, frozen=True):
    """How a container ended."""

    exit_code: int = 0


class ContainerState(Wire, frozen=True):
    """A container's state, if it has ended."""

    terminated: Terminated | None = None


class ContainerStatus(Interned, frozen=True):
    """How a container fares."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    last_state: ContainerState = ContainerState()


class PodCondition(Interned, frozen=True):
    """One fact about a pod. Not a `Condition`: pods leave most fields out, and filling them in takes time."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None  # null is how Go writes that nobody knows


class PodStatus(Wire, frozen=True):
    """How a pod fares."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Requests(Interned, frozen=True):
    """What a container takes from its node. Written by the server, quantities are always strings."""

    requests: dict[str, str] = field(default_factory=dict)


class RunningContainer(Interned, frozen=True):
    """A container of a pod in the cluster."""

    resources: Requests = Requests()
    restart_policy: str = ""


class LivePodSpec(Wire, frozen=True):
    """The spec of a pod in the cluster: who it is, where it is, what it takes."""

    containers: tuple[RunningContainer, ...] = ()
    init_containers: tuple[RunningContainer, ...] = ()
    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Gate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    resource_claims: tuple[PodClaim, ...] = ()
    resources: Requests | None = None
    overhead: dict[str, str] = field(default_factory=dict)


class Pod(Wire, frozen=True):
    """A pod in the cluster."""

    metadata: ObjectMeta
    spec: LivePodSpec = LivePodSpec()
    status: PodStatus = PodStatus()


_TEMPLATE = msgspec.json.Decoder(PodSpecView)


def read_template(pod_spec: Raw) -> PodSpecView:
    """What a pod template says, as far as the product asks."""
    return _TEMPLATE.decode(pod_spec)
