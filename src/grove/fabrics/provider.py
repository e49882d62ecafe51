"""What a vendor of fabric domains is: one small Protocol.

A provider says which annotations are its own, what its domain object looks like and how a pod joins one. Who
writes, watches, shares and removes domains is the core: a provider never sees a client.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.types.kind import ForeignKind

Body = dict[str, Any]
ApiRef = ForeignKind


class Scope(StrEnum):
    """Who shares a domain that a clique asks for by name."""

    SHARED = "shared"
    """All that use the name, in the namespace."""
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
    """Whether the operator may start all the same."""

    FATAL = "fatal"
    WARNING = "warning"


class Finding(Struct, frozen=True):
    """What a look at the cluster has shown, and what would help."""

    severity: Severity
    words: str


class Discovery(Struct, frozen=True):
    """What there is: the kinds that the API server serves, of those that were asked about, as `(group,
    version, plural)`, and what drivers have brought."""

    served: frozenset[tuple[str, str, str]] = frozenset()
    device_classes: frozenset[str] | None = None
    """The names of all DeviceClasses; None if they could not be seen."""
    devices: bool | None = None
    """Whether the vendor's driver offers devices anywhere; None if that could not be seen."""

    def serves(self, api: ForeignKind) -> bool:
        """Whether requests for that kind can succeed. The same kind in another version does not count."""
        return (api.group, api.version, api.plural) in self.served


class DomainRequest(Struct, frozen=True):
    """A domain that is to be made."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    owners: tuple[Body, ...]
    finalizers: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    """What is asked of it beside its name, by annotation."""


class Domain(Struct, frozen=True):
    """A domain as the cluster has it."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] | None = None


class DomainView(Struct, frozen=True):
    """How a domain fares."""

    ready_nodes: int = 0
    total_nodes: int = 0
    partitions: tuple[str, ...] = ()
    """Separate parts of the fabric that its nodes are in; more than one means that it is split."""
    nodes: tuple[str, ...] = ()
    """The names of its nodes."""


@runtime_checkable
class FabricDomainProvider(Protocol):
    """A vendor."""

    @property
    def vendor(self) -> str:
        """A short name, unique."""
        ...

    @property
    def annotation_key(self) -> str:
        """The annotation of a clique that names its domain."""
        ...

    @property
    def scope_key(self) -> str:
        """The annotation of a clique that says who shares it."""
        ...

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """Annotations that say more about a domain, with the values that they may have: of the clique that
        names it, or of the set that gets it by itself."""
        ...

    @property
    def supports_auto(self) -> bool:
        """Whether it serves sets that ask for a domain for each replica. One provider at most does."""
        ...

    @property
    def claim_name(self) -> str:
        """What the claim by which a pod joins a domain is called in the pod; reserved."""
        ...

    @property
    def api(self) -> ForeignKind:
        """The kind of its domain object: it drives the watch."""
        ...

    @property
    def advice(self) -> str:
        """What helps if that kind is not served."""
        ...

    @property
    def driver(self) -> str:
        """The DRA driver whose devices are the channels by which pods join domains; empty if none are."""
        ...

    @property
    def accelerator_classes(self) -> frozenset[str]:
        """The DeviceClasses of the vendor's accelerators, where those are asked for by claims."""
        ...

    def preflight(self, discovery: Discovery) -> list[Finding]:
        """What the automatic mode lacks in this cluster."""
        ...

    def uses_accelerator(self, container: Mapping[str, Any]) -> bool:
        """Whether a container asks for the vendor's accelerators."""
        ...

    def amount(self, quantities: Mapping[str, Any]) -> int:
        """How many of the vendor's accelerators are among the resources of a container, or of a node."""
        ...

    def channels(self, devices: Sequence[Mapping[str, Any]]) -> int:
        """How many pods at once can join domains by these devices of the driver, on the node with them."""
        ...

    def validate(self, value: str, scope: Scope) -> list[str]:
        """What is wrong with the name of a domain."""
        ...

    def build_domain(self, request: DomainRequest) -> Body:
        """The domain object as it should be."""
        ...

    def template_name(self, domain: Domain) -> str:
        """The ResourceClaimTemplate that the pods of a domain claim from."""
        ...

    def owns_template(self, domain: Domain, template: ObjectMeta) -> bool:
        """Whether a ResourceClaimTemplate is the one that belongs to the domain: somebody else may have taken
        its name."""
        ...

    def inject(
        self, pod_spec: Body, template_name: str, policy: Policy, by_claim: Collection[str] = ()
    ) -> Body:
        """A pod spec that joins the domain; the argument is not changed. Twice is as good as once. Containers
        that use one of the claims `by_claim` have accelerators as well; with `claims.SHARED` among them, all
        do."""
        ...

    def observe(self, domain: Domain) -> DomainView:
        """How a domain fares."""
        ...

    def node_holder(self, node: Mapping[str, Any]) -> str | None:
        """The UID of the domain that occupies a node."""
        ...
