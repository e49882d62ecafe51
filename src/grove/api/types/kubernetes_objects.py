"""Objects of other kinds than pods, as far as the product reads them."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, field

from grove.api.meta import ObjectMeta
from grove.api.types.pod import PodCondition
from grove.api.wire import Wire

Quantities = dict[str, str | int | float]


class Taint(Wire, frozen=True):
    """Keeps pods off a node that do not tolerate it."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Wire, frozen=True):
    """What an administrator says about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire, frozen=True):
    """What a node has to offer."""

    allocatable: Quantities = field(default_factory=dict)
    conditions: tuple[PodCondition, ...] = ()


class Node(Wire, frozen=True):
    """A node: where it is (labels), what it has, whether it takes pods."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ServiceSpec(Wire, frozen=True):
    """What of a headless Service can be wrong."""

    cluster_ip: str = field(name="clusterIP", default="")
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = field(default_factory=dict)


class Service(Wire, frozen=True):
    """The headless Service of a replica."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ScaleTarget(Wire, frozen=True):
    """What an autoscaler scales."""

    kind: str
    name: str
    api_version: str = ""


class AutoscalerSpec(Wire, frozen=True):
    """What of an autoscaler can be wrong. Metrics are compared as written."""

    scale_target_ref: ScaleTarget
    max_replicas: int
    min_replicas: int | None = None
    metrics: tuple[Raw, ...] = ()


class HorizontalPodAutoscaler(Wire, frozen=True):
    """The autoscaler of a clique or a group."""

    metadata: ObjectMeta
    spec: AutoscalerSpec


class ClaimConsumer(Wire, frozen=True):
    """A pod that a claim is reserved for."""

    name: str
    uid: str
    resource: str = ""


class ResourceClaimStatus(Wire, frozen=True):
    """Who uses a claim."""

    allocation: Raw = Raw()
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """A claim on devices."""

    metadata: ObjectMeta
    status: ResourceClaimStatus = ResourceClaimStatus()


class ClaimTemplateBody(Wire, frozen=True):
    """What claims made from a template look like: raw, as it is only handed on."""

    spec: Raw
    metadata: Raw = Raw()


class ResourceClaimTemplateObject(Wire, frozen=True):
    """A ResourceClaimTemplate object that a set refers to."""

    metadata: ObjectMeta
    spec: ClaimTemplateBody


class ResourceSliceSpec(Wire, frozen=True):
    """Which devices a driver offers where."""

    driver: str = ""
    node_name: str = ""
    devices: tuple[dict[str, Any], ...] = ()


class ResourceSlice(Wire, frozen=True):
    """Devices that pods may claim."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()


class PartialObjectMetadata(Wire, frozen=True):
    """An object of which only the metadata matters: ServiceAccount, Role, RoleBinding, shared claim.

    Never a Secret: the operator may create those, not read them.
    """

    metadata: ObjectMeta


class ResourceQuotaStatus(Wire, frozen=True):
    """What admission goes by: how much there may be, and how much there is."""

    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(Wire, frozen=True):
    """A limit on what a namespace may hold."""

    metadata: ObjectMeta
    status: ResourceQuotaStatus = ResourceQuotaStatus()
