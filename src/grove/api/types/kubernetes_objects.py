"""Kubernetes objects other than pods, with the fields that the operator reads."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, field

from grove.api.meta import Interned, ObjectMeta
from grove.api.types.pod import PodCondition
from grove.api.wire import Wire

Quantities = dict[str, str | int | float]


class Taint(Interned, frozen=True):
    """A taint of a node: pods that do not tolerate it are not scheduled there."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Wire, frozen=True):
    """Whether, and for which pods, an administrator lets a node be scheduled to."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire, frozen=True):
    """The resources of a node that pods can use, and its conditions."""

    allocatable: Quantities = field(default_factory=dict)
    conditions: tuple[PodCondition, ...] = ()


class Node(Wire, frozen=True):
    """A node: its place in the topology (labels), its resources, and whether pods can be scheduled to it."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ServiceSpec(Wire, frozen=True):
    """The fields of a headless Service that the operator compares and repairs."""

    cluster_ip: str = field(name="clusterIP", default="")
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = field(default_factory=dict)


class Service(Wire, frozen=True):
    """The headless Service of a replica."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ScaleTarget(Wire, frozen=True):
    """The object that an autoscaler scales."""

    kind: str
    name: str
    api_version: str = ""


class AutoscalerSpec(Wire, frozen=True):
    """The fields of an autoscaler that the operator compares and repairs. Metrics are compared as written."""

    scale_target_ref: ScaleTarget
    max_replicas: int
    min_replicas: int | None = None
    metrics: tuple[Raw, ...] = ()


class HorizontalPodAutoscaler(Wire, frozen=True):
    """The HorizontalPodAutoscaler of a clique or a group."""

    metadata: ObjectMeta
    spec: AutoscalerSpec


class ClaimConsumer(Wire, frozen=True):
    """A pod that a claim is reserved for."""

    name: str
    uid: str
    resource: str = ""


class ResourceClaimStatus(Wire, frozen=True):
    """Whether a claim is allocated, and the pods that it is reserved for."""

    allocation: Raw = Raw()
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """A claim on devices."""

    metadata: ObjectMeta
    status: ResourceClaimStatus = ResourceClaimStatus()


class ClaimTemplateBody(Wire, frozen=True):
    """The claim that a template describes: raw JSON, copied into the claims created from it."""

    spec: Raw
    metadata: Raw = Raw()


class ResourceClaimTemplateObject(Wire, frozen=True):
    """A ResourceClaimTemplate object that a set refers to."""

    metadata: ObjectMeta
    spec: ClaimTemplateBody


class ResourceSliceSpec(Wire, frozen=True):
    """The devices of a driver on one node."""

    driver: str = ""
    node_name: str = ""
    devices: tuple[dict[str, Any], ...] = ()


class ResourceSlice(Wire, frozen=True):
    """Devices that pods may claim."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()


class PartialObjectMetadata(Wire, frozen=True):
    """An object of which only the metadata is read: ServiceAccount, Role, RoleBinding, shared claim.

    Never a Secret: the operator's role allows it to create Secrets, not to read them.
    """

    metadata: ObjectMeta


class PriorityClass(Wire, frozen=True):
    """A priority by name."""

    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class ResourceQuotaStatus(Wire, frozen=True):
    """The limits of a quota and what is used of them, as quota admission reads them."""

    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(Wire, frozen=True):
    """A limit on what a namespace may hold."""

    metadata: ObjectMeta
    status: ResourceQuotaStatus = ResourceQuotaStatus()
