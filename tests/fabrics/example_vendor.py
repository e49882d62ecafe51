"""A second fabric provider, as another package would write it: no other module refers to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from grove.api.meta import ObjectMeta
from grove.api.types.kind import ForeignKind
from grove.fabrics import pod_claims
from grove.fabrics.provider import (
    Body,
    Discovery,
    Domain,
    DomainRequest,
    DomainView,
    Finding,
    Policy,
    Scope,
)

ISLANDS = ForeignKind("example.com", "v1", "islands", "Island")


class Example:
    """The provider for accelerators of example.com, whose domains are called islands."""

    vendor = "example"
    annotation_key = "example.com/fabric"
    annotation_prefix = "example.com/fabric"
    scope_key = "example.com/fabric-scope"
    options: Mapping[str, tuple[str, ...]] = {}
    supports_auto = False
    claim_name = "island"
    api = ISLANDS
    advice = "install the example driver"
    driver = ""
    domain_label = ""
    partition_label = ""
    partition_nodes = 0
    accelerator_classes: frozenset[str] = frozenset()

    def preflight(self, discovery: Discovery) -> list[Finding]:
        return []

    def uses_accelerator(self, container: Mapping[str, Any]) -> bool:
        return pod_claims.asks_for(container, "example.com/npu")

    def amount(self, quantities: Mapping[str, Any]) -> int:
        return pod_claims.amount(quantities, "example.com/npu")

    def channels(self, devices: Sequence[Mapping[str, Any]]) -> int:
        return len(devices)

    def validate(self, value: str, scope: Scope) -> list[str]:
        return pod_claims.name_errors(value, scope)

    def build_domain(self, request: DomainRequest) -> Body:
        metadata = {
            "name": request.name,
            "namespace": request.namespace,
            "labels": dict(request.labels),
            "finalizers": list(request.finalizers),
            "ownerReferences": list(request.owners),
        }
        spec = {"template": f"{request.name}-berth"}
        return {"apiVersion": self.api.api_version, "kind": self.api.name, "metadata": metadata, "spec": spec}

    def template_name(self, domain: Domain) -> str:
        return str(domain.spec["template"])

    def owns_template(self, domain: Domain, template: ObjectMeta) -> bool:
        return True

    def inject(
        self, pod_spec: Body, template_name: str, policy: Policy, by_claim: Collection[str] = ()
    ) -> Body:
        accelerated = pod_claims.accelerated_or_claimed(self.uses_accelerator, by_claim)
        return pod_claims.with_claim(pod_spec, self.claim_name, template_name, accelerated, policy)

    def observe(self, domain: Domain) -> DomainView:
        return DomainView()
