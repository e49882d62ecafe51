"""Pods of the whole cluster, with the fields that decide which node they use and how much of it.

There may be very many of them, so everything else is skipped while decoding. What is needed of few pods only
stays raw.
"""

from __future__ import annotations

from msgspec import Raw, field

from grove.api.naming import labels
from grove.api.wire import Wire

Resources = dict[str, str | int | float]


class GangLabels(Wire, frozen=True):
    """The labels that say whether a pod is one of ours, of which gang, and in which fabric domain."""

    managed_by: str = field(name=labels.MANAGED_BY, default="")
    gang: str = field(name=labels.GANG, default="")
    domain: str = field(name=labels.COMPUTE_DOMAIN, default="")


class SchedulingMetadata(Wire, frozen=True):
    """The identity of a pod, its age and its labels."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: GangLabels = GangLabels()


class RequestedResources(Wire, frozen=True):
    """The resource requests of a container or a pod."""

    requests: Resources | None = None


class RequestingContainer(Wire, frozen=True):
    """A container or init container."""

    name: str = ""
    resources: RequestedResources | None = None
    restart_policy: str = ""


class SchedulingSpec(Wire, frozen=True):
    """The spec: requests, node, scheduler, and (raw) which nodes the pod may run on."""

    containers: tuple[RequestingContainer, ...] = ()
    init_containers: tuple[RequestingContainer, ...] = ()
    overhead: Resources | None = None
    resources: RequestedResources | None = None
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    scheduling_gates: tuple[Raw, ...] = ()
    node_selector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()


class ContainerAllocation(Wire, frozen=True):
    """What the kubelet has allocated to a container, which differs from its requests during a resize."""

    name: str = ""
    allocated_resources: Resources | None = None
    resources: RequestedResources | None = None


class SchedulingCondition(Wire, frozen=True):
    """A condition of a pod, without its message."""

    type: str = ""
    status: str = ""
    reason: str = ""


class SchedulingStatus(Wire, frozen=True):
    """The status: the nominated node, allocated resources, and what the scheduler says."""

    nominated_node_name: str = ""
    conditions: tuple[SchedulingCondition, ...] = ()
    container_statuses: tuple[ContainerAllocation, ...] = ()
    init_container_statuses: tuple[ContainerAllocation, ...] = ()
    allocated_resources: Resources | None = None
    resources: RequestedResources | None = None


class SchedulingPod(Wire, frozen=True):
    """A pod of the cluster."""

    metadata: SchedulingMetadata
    spec: SchedulingSpec = SchedulingSpec()
    status: SchedulingStatus = SchedulingStatus()


class NodeRequirement(Wire, frozen=True):
    """One expression of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """A node selector term."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()


class NodeSelectorTerms(Wire, frozen=True):
    """A node selector: one of its terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Wire, frozen=True):
    """Node affinity, of which only the required part is read."""

    required_during_scheduling_ignored_during_execution: NodeSelectorTerms | None = None


class Affinity(Wire, frozen=True):
    """Affinity, of which only that to nodes is read."""

    node_affinity: NodeAffinity | None = None
