"""Pods and pod templates, with the fields that the operator reads. Cheap to decode: there are thousands of
pods.

These types are for reading only. A pod is created from its template's raw JSON, so that no field is lost.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, field

from grove.api.meta import Interned, ObjectMeta
from grove.api.wire import Wire


class PodPhase(StrEnum):
    """The phase of a pod."""

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
    """What a container, or a pod as a whole, requests. Quantities are as written: `"500m"`, `2`."""

    requests: dict[str, str | int | float] = field(default_factory=dict)
    limits: dict[str, str | int | float] = field(default_factory=dict)
    claims: tuple[ClaimReference, ...] = ()


class EnvVar(Wire, frozen=True):
    """An environment variable; only the name is read."""

    name: str = ""


class Container(Wire, frozen=True):
    """A container or init container."""

    name: str = ""
    env: tuple[EnvVar, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""


class Gate(Interned, frozen=True):
    """A scheduling gate: the pod is not scheduled until it is removed."""

    name: str


class PodClaim(Interned, frozen=True):
    """A claim of a pod: an existing ResourceClaim, or one created for the pod from a template."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class Toleration(Wire, frozen=True):
    """A toleration: lets a pod be scheduled to nodes with a matching taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SchedulingGroup(Wire, frozen=True):
    """The PodGroup that a pod is scheduled with."""

    pod_group_name: str = ""


class PodSpecView(Wire, frozen=True):
    """The spec of a pod template."""

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
    """How a container terminated."""

    exit_code: int = 0
    reason: str = ""


class WaitingContainer(Wire, frozen=True):
    """Why a container does not run yet. The message, which has numbers that change, is not read."""

    reason: str = ""


class ContainerState(Wire, frozen=True):
    """The state of a container; `running` is not read."""

    terminated: Terminated | None = None
    waiting: WaitingContainer | None = None


class ContainerStatus(Interned, frozen=True):
    """The status of a container."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodCondition(Interned, frozen=True):
    """A condition of a pod. Not a `Condition`: pods omit most of its fields, and filling them takes time."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None  # Go writes an unknown time as null


class PodStatus(Wire, frozen=True):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""


class Requests(Interned, frozen=True):
    """The resource requests of a container. The API server writes quantities as strings."""

    requests: dict[str, str] = field(default_factory=dict)


class RunningContainer(Interned, frozen=True):
    """A container of an existing pod."""

    resources: Requests = Requests()
    restart_policy: str = ""


class NodeSelectorTerms(Wire, frozen=True):
    """Nodes that a pod may go to: one of the terms must match."""

    node_selector_terms: tuple[dict[str, Any], ...] = ()


class RequiredNodeAffinity(Wire, frozen=True):
    """The required part of node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelectorTerms | None = None


class LiveAffinity(Wire, frozen=True):
    """The affinity of an existing pod; only what must be known to add to it."""

    node_affinity: RequiredNodeAffinity | None = None


class LivePodSpec(Wire, frozen=True):
    """The spec of an existing pod: hostname, node, scheduling and resource requests."""

    containers: tuple[RunningContainer, ...] = ()
    init_containers: tuple[RunningContainer, ...] = ()
    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Gate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: LiveAffinity | None = None
    resource_claims: tuple[PodClaim, ...] = ()
    resources: Requests | None = None
    overhead: dict[str, str] = field(default_factory=dict)


class Pod(Wire, frozen=True):
    """An existing pod."""

    metadata: ObjectMeta
    spec: LivePodSpec = LivePodSpec()
    status: PodStatus = PodStatus()


_TEMPLATE = msgspec.json.Decoder(PodSpecView)


def read_template(pod_spec: Raw) -> PodSpecView:
    """Decodes the fields of a pod template that the operator reads."""
    return _TEMPLATE.decode(pod_spec)
