"""The provider for NVIDIA: multi-node NVLink through the ComputeDomains of its DRA driver.

The driver, never the operator, creates the ResourceClaimTemplate of a domain, under the name in the domain's
spec. Every pod claims a channel from it, one exclusive device per node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from grove.api.meta import ObjectMeta
from grove.api.naming import external_keys, well_known
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
    Severity,
)

VENDOR = "nvidia"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
COMPUTE_DOMAIN = ForeignKind("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain")


class Nvidia:
    """The provider."""

    vendor = VENDOR
    annotation_key = external_keys.NVIDIA_COMPUTE_DOMAIN
    annotation_prefix = external_keys.NVIDIA_COMPUTE_PREFIX
    scope_key = external_keys.NVIDIA_COMPUTE_DOMAIN_SCOPE
    options: Mapping[str, tuple[str, ...]] = {external_keys.NVIDIA_ALLOCATION_MODE: ("Single", "All")}
    supports_auto = True
    claim_name = well_known.MNNVL_CLAIM
    api = COMPUTE_DOMAIN
    advice = "install the NVIDIA DRA driver"
    driver = "compute-domain.nvidia.com"
    domain_label = external_keys.NVIDIA_DRIVER_COMPUTE_DOMAIN
    partition_label = external_keys.NVIDIA_GPU_CLIQUE
    partition_nodes = 18  # the driver's default
    accelerator_classes = frozenset({"gpu.nvidia.com"})

    def preflight(self, discovery: Discovery) -> list[Finding]:
        """The ComputeDomain CRD must be served; ResourceClaims should be, and the driver should have
        channels."""
        if not discovery.serves(self.api):
            problem = f"is missing: {self.advice}"
            if other := discovery.versions(self.api):
                problem = (
                    f"serves only {', '.join(other)} and not {self.api.version}: {self.advice} in a version "
                    "that does"
                )
            return [
                Finding(
                    Severity.FATAL,
                    "automatic MNNVL is enabled (network.autoMNNVLEnabled) but the ComputeDomain CRD "
                    f"({self.api.crd_name}) {problem}, or disable automatic MNNVL",
                )
            ]
        if not discovery.serves(pod_claims.CLAIMS):
            message = (
                f"{pod_claims.CLAIMS.api_version} is not served, so pods lose their claims: upgrade to "
                "Kubernetes 1.34 or later"
            )
            return [Finding(Severity.WARNING, message)]
        return [Finding(Severity.WARNING, message) for message in _missing(self.driver, discovery)]

    def uses_accelerator(self, container: Mapping[str, Any]) -> bool:
        """Whole GPUs only: MIG slices and shared GPUs have no NVLink of their own."""
        return pod_claims.asks_for(container, external_keys.NVIDIA_GPU)

    def amount(self, quantities: Mapping[str, Any]) -> int:
        return pod_claims.amount(quantities, external_keys.NVIDIA_GPU)

    def channels(self, devices: Sequence[Mapping[str, Any]]) -> int:
        """One per node: the device is exclusive, whichever domain it is used for."""
        return sum(_is_channel(device) for device in devices)

    def validate(self, value: str, scope: Scope) -> list[str]:
        return pod_claims.name_errors(value, scope)

    def build_domain(self, request: DomainRequest) -> Body:
        """An elastic domain (`numNodes: 0`): its daemons do not wait for each other. Old CRDs require it."""
        metadata = {
            "name": request.name,
            "namespace": request.namespace,
            "labels": dict(request.labels),
            "finalizers": list(request.finalizers),
            "ownerReferences": list(request.owners),
        }
        channel: Body = {"resourceClaimTemplate": {"name": request.name}}
        if mode := request.options.get(external_keys.NVIDIA_ALLOCATION_MODE):
            channel["allocationMode"] = mode
        return {
            "apiVersion": self.api.api_version,
            "kind": self.api.name,
            "metadata": metadata,
            "spec": {"numNodes": 0, "channel": channel},
        }

    def template_name(self, domain: Domain) -> str:
        channel = domain.spec.get("channel") or {}
        template = channel.get("resourceClaimTemplate") or {}
        return str(template.get("name") or domain.metadata.name)

    def owns_template(self, domain: Domain, template: ObjectMeta) -> bool:
        """By the driver's label, or by an owner reference to the domain, as other implementations set it."""
        uid = domain.metadata.uid
        labelled = template.labels.get(external_keys.NVIDIA_DRIVER_COMPUTE_DOMAIN) == uid
        return labelled or any(owner.uid == uid for owner in template.owner_references)

    def inject(
        self, pod_spec: Body, template_name: str, policy: Policy, by_claim: Collection[str] = ()
    ) -> Body:
        accelerated = pod_claims.accelerated_or_claimed(self.uses_accelerator, by_claim)
        return pod_claims.with_claim(pod_spec, self.claim_name, template_name, accelerated, policy)

    def observe(self, domain: Domain) -> DomainView:
        """From the nodes in the status: an elastic domain without nodes reports itself as ready at once.
        A node whose GPUs are in no fabric has no clique, and is ready without IMEX."""
        nodes = (domain.status or {}).get("nodes") or []
        partitions = {str(node["cliqueID"]) for node in nodes if node.get("cliqueID")}
        named = tuple(str(node["name"]) for node in nodes if node.get("name"))
        not_ready = [node for node in nodes if node.get("status") != "Ready"]
        return DomainView(
            len(nodes) - len(not_ready),
            len(nodes),
            tuple(sorted(partitions)),
            named,
            _names(not_ready),
            _names(node for node in nodes if not node.get("cliqueID")),
        )


def _names(nodes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted(str(node["name"]) for node in nodes if node.get("name")))


def _missing(driver: str, discovery: Discovery) -> Iterator[str]:
    """What pods in domains would wait for, as far as it can be read."""
    if discovery.device_classes is not None and CHANNEL_CLASS not in discovery.device_classes:
        yield f"DeviceClass {CHANNEL_CLASS} is missing, so pods in domains will wait: reinstall the driver"
    if discovery.devices is False:
        yield f"no ResourceSlice of {driver} exists: pods in domains will wait until a node has a channel"


def _is_channel(device: Mapping[str, Any]) -> bool:
    """Whether pods can claim the device. The driver also offers devices for its daemons, and channels that
    its DeviceClass does not select."""
    attributes = device.get("attributes") or {}
    kind, number = (attributes.get(name) or {} for name in ("type", "id"))
    return kind.get("string") == "channel" and number.get("int") == 0
