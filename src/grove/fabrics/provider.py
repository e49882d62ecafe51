"""The interface of fabric providers, one per vendor: one small Protocol.

A provider defines its annotations, its domain object and how a pod joins a domain. The core writes, watches,
shares and deletes domains: a provider never has a client.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.types.kind import ForeignKind

Body = dict[str, Any]


class Scope(StrEnum):
    """Which cliques share a domain that a clique requests by name."""

    SHARED = "shared"
    """All cliques of the namespace that use the name."""
    REPLICA = "replica"
    """Each replica of the set has its own."""
    GROUP_REPLICA = "scaling-group-replica"
    """Each replica of the clique's scaling group has its own."""


class Policy(StrEnum):
    """Which containers of a pod use the domain."""

    ACCELERATED_ONLY = "accelerated-only"
    ACCELERATED_OR_ALL = "accelerated-or-all"
    """Those with accelerators; if there are none, every container that is not an init container."""


class Severity(StrEnum):
    """Whether the operator can start in spite of a finding."""

    FATAL = "fatal"
    WARNING = "warning"


class Finding(Struct, frozen=True):
    """A problem that a preflight check found, and what the user can do."""

    severity: Severity
    message: str


class Discovery(Struct, frozen=True):
    """The state of the cluster for preflight checks: the served kinds, of those that were checked, as
    `(group, version, plural)`, and what drivers have installed."""

    served: frozenset[tuple[str, str, str]] = frozenset()
    device_classes: frozenset[str] | None = None
    """The names of all DeviceClasses; None if they could not be read."""
    devices: bool | None = None
    """Whether the vendor's driver offers devices on any node; None if that could not be read."""

    def serves(self, api: ForeignKind) -> bool:
        """Whether the kind is served in exactly this version."""
        return (api.group, api.version, api.plural) in self.served

    def versions(self, api: ForeignKind) -> list[str]:
        """The versions in which the kind is served."""
        return sorted(
            version for group, version, plural in self.served if (group, plural) == (api.group, api.plural)
        )


class DomainRequest(Struct, frozen=True):
    """A domain that is to be created."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    owners: tuple[Body, ...]
    finalizers: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    """The provider's option annotations."""


class Domain(Struct, frozen=True):
    """An existing domain object."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] | None = None


class DomainView(Struct, frozen=True):
    """The state of a domain, independent of the vendor."""

    ready_nodes: int = 0
    total_nodes: int = 0
    partitions: tuple[str, ...] = ()
    """The partitions of the fabric that its nodes are in; more than one means that the fabric is split."""
    nodes: tuple[str, ...] = ()
    """The names of its nodes."""
    not_ready: tuple[str, ...] = ()
    """Those of them that are not ready."""
    without_partition: tuple[str, ...] = ()
    """Those of them that are in no partition: the fabric joins them with no other node. Empty for a vendor
    without partitions."""


@runtime_checkable
class FabricDomainProvider(Protocol):
    """The provider of a vendor."""

    @property
    def vendor(self) -> str:
        """A short, unique name."""
        ...

    @property
    def annotation_key(self) -> str:
        """The annotation of a clique that names its domain."""
        ...

    @property
    def annotation_prefix(self) -> str:
        """The beginning, in lower case, of all its annotations; an unknown one is probably misspelled."""
        ...

    @property
    def scope_key(self) -> str:
        """The annotation of a clique with the `Scope` of that domain."""
        ...

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """Annotations with options of a domain, and their allowed values, the default first. They are on the
        clique that names the domain, or on the set that gets it automatically."""
        ...

    @property
    def supports_auto(self) -> bool:
        """Whether it supports automatic domains, one per replica. At most one provider in use may."""
        ...

    @property
    def claim_name(self) -> str:
        """The reserved name of the pod's claim through which it joins a domain."""
        ...

    @property
    def api(self) -> ForeignKind:
        """The kind of its domain object, which the core watches."""
        ...

    @property
    def advice(self) -> str:
        """What the user can do if that kind is not served."""
        ...

    @property
    def driver(self) -> str:
        """The DRA driver whose devices are the channels by which pods join domains; empty for none."""
        ...

    @property
    def domain_label(self) -> str:
        """The label of a node with the UID of the domain that the node is in; empty if nodes have none."""
        ...

    @property
    def partition_label(self) -> str:
        """The label of a node with the partition of the fabric that it is in: there are no links to nodes of
        other partitions. Empty if there are no partitions."""
        ...

    @property
    def partition_nodes(self) -> int:
        """The highest number of nodes of one partition that can be in a domain; 0 if there is no limit."""
        ...

    @property
    def accelerator_classes(self) -> frozenset[str]:
        """The DeviceClasses of the vendor's accelerators, for pods that request them through claims."""
        ...

    def preflight(self, discovery: Discovery) -> list[Finding]:
        """What is missing in this cluster for automatic domains."""
        ...

    def uses_accelerator(self, container: Mapping[str, Any]) -> bool:
        """Whether a container requests the vendor's accelerators."""
        ...

    def amount(self, quantities: Mapping[str, Any]) -> int:
        """The number of the vendor's accelerators among the resources of a container or a node."""
        ...

    def channels(self, devices: Sequence[Mapping[str, Any]]) -> int:
        """How many pods at once can join domains on a node with these devices of the driver."""
        ...

    def validate(self, value: str, scope: Scope) -> list[str]:
        """What is wrong with the name of a domain."""
        ...

    def build_domain(self, request: DomainRequest) -> Body:
        """The desired domain object."""
        ...

    def template_name(self, domain: Domain) -> str:
        """The ResourceClaimTemplate that the pods of a domain claim from."""
        ...

    def owns_template(self, domain: Domain, template: ObjectMeta) -> bool:
        """Whether a ResourceClaimTemplate belongs to the domain: an unrelated one may have its name."""
        ...

    def inject(
        self, pod_spec: Body, template_name: str, policy: Policy, by_claim: Collection[str] = ()
    ) -> Body:
        """The pod spec with the claim through which the pod joins the domain. Idempotent; the argument is not
        changed. Containers that use one of the claims `by_claim` have accelerators as well; with
        `pod_claims.SHARED` among them, all containers have."""
        ...

    def observe(self, domain: Domain) -> DomainView:
        """The state of a domain."""
        ...
