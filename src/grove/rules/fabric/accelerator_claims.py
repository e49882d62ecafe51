"""Detects pods that request accelerators by resource claims only, if `network.autoMNNVLDetectDRA` is set.

The devices of a claim are defined in a ResourceClaimTemplate or a ResourceClaim, which may change or be
deleted. They are therefore read once, when the set is created, and the claims for accelerators are recorded
in the annotation `grove.io/auto-mnnvl-claims` of the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from grove.api.naming import annotations as keys
from grove.api.types.pod import PodClaim, read_template
from grove.fabrics.pod_claims import SHARED
from grove.rules import decode
from grove.rules.claims.shared_claims import CliqueClaim, shared_claims
from grove.rules.decode import ObjectFormatError, Workload
from grove.rules.model import Facts

Body = dict[str, Any]
Classes = Mapping["ClaimSource", frozenset[str] | None]


class ClaimSource(NamedTuple):
    """The object that defines the devices of a claim."""

    claim: bool
    """Whether it is a ResourceClaim; otherwise it is a ResourceClaimTemplate."""
    name: str
    namespace: str = ""
    """Its namespace; empty for the namespace of the set."""

    def __str__(self) -> str:
        kind = "ResourceClaim" if self.claim else "ResourceClaimTemplate"
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class _UsedClaim(NamedTuple):
    """A claim that the pods of a clique use."""

    clique: str
    claim: str
    """Its name in the pod spec."""
    source: ClaimSource | frozenset[str]
    """The object that defines its devices; or its DeviceClasses, if the set itself defines them."""
    shared_by: str = ""
    """If several pods use it together, the first half of the warning about that."""


def claim_sources(body: Body, facts: Facts) -> tuple[ClaimSource, ...] | None:
    """The objects to read before `with_claim_annotation`; None if claims of this set are not detected.
    Never raises."""
    try:
        workload = decode.workload(body)
    except (ObjectFormatError, RecursionError):
        return None  # validation reports it
    if keys.MNNVL_CLAIMS in workload.metadata.annotations:
        return None
    if not (detected := _detected(workload, facts)):
        return None
    sources = (claim.source for claim in _claims(workload) if claim.clique in detected)
    return tuple(dict.fromkeys(source for source in sources if isinstance(source, ClaimSource)))


def with_claim_annotation(body: Body, facts: Facts, classes: Classes) -> tuple[Body, list[str]]:
    """The set with an annotation that lists its claims for accelerators, and warnings about claims that do
    not count. Pods that share accelerators share their node, which has one channel: in a domain only one of
    them could start, so they get no automatic one."""
    provider, workload = facts.fabrics.auto, decode.workload(body)
    accelerators = provider.accelerator_classes if provider is not None else frozenset()
    detected = _detected(workload, facts)
    found, warnings = [], []
    for clique, claim, source, shared_by in _claims(workload):
        if clique not in detected:
            continue
        requested = classes.get(source) if isinstance(source, ClaimSource) else source
        if requested is None:
            # Whether a template in another namespace exists is not disclosed.
            other = isinstance(source, ClaimSource) and source.namespace
            why = "does not exist or is not shared with this namespace" if other else "does not exist"
            warnings.append(f"{source} {why}: it does not count for MNNVL; create it before the PodCliqueSet")
        elif requested & accelerators:
            if shared_by:
                effect = "they get no automatic domain"
                if detected[clique]:
                    effect = "all of them but one will wait"
                warnings.append(f"{shared_by}, and their node has one channel: {effect}")
            else:
                found.append(f"{clique}/{claim}")
    warnings = list(dict.fromkeys(warnings))
    if not found:
        return body, warnings
    value = ",".join(dict.fromkeys(found))
    annotations = {**(body["metadata"].get("annotations") or {}), keys.MNNVL_CLAIMS: value}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}, warnings


def _detected(workload: Workload, facts: Facts) -> dict[str, bool]:
    """The cliques whose claims are looked up: all that may get automatic domains, and those that name their
    domain, which are True."""
    network, provider = facts.network, facts.fabrics.auto
    if provider is None or not network.auto_mnnvl_detect_dra:
        return {}
    opted_out = workload.metadata.annotations.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_DISABLED
    automatic = network.auto_mnnvl_enabled and not opted_out
    return {
        clique.name: provider.annotation_key in clique.annotations
        for clique in workload.template.cliques
        if automatic or provider.annotation_key in clique.annotations
    }


def device_classes_in(spec: Mapping[str, Any]) -> frozenset[str]:
    """The DeviceClasses that the spec of a claim requests, in any version of `resource.k8s.io`."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    candidates = (
        each
        for request in requests
        for each in (request, request.get("exactly") or {}, *(request.get("firstAvailable") or ()))
    )
    return frozenset(str(each["deviceClassName"]) for each in candidates if each.get("deviceClassName"))


def _claims(workload: Workload) -> Iterator[_UsedClaim]:
    """The claims in the pod specs of cliques, and the claims of `resourceSharing`."""
    for clique in workload.template.cliques:
        for claim in read_template(clique.spec.pod_spec).resource_claims:
            if (source := _source(claim)) is not None:
                yield _UsedClaim(clique.name, claim.name, source)
    own = {each.name: bytes(each.template_spec) for each in workload.template.resource_claim_templates}
    for shared in shared_claims(workload):
        shared_by = f"{shared.path}: up to {shared.pods} pods share one claim for accelerators"
        yield _UsedClaim(
            shared.clique, SHARED, _shared_source(shared, own), shared_by if shared.pods > 1 else ""
        )


def _source(claim: PodClaim) -> ClaimSource | None:
    if claim.resource_claim_name:
        return ClaimSource(True, claim.resource_claim_name)
    if claim.resource_claim_template_name:
        return ClaimSource(False, claim.resource_claim_template_name)
    return None


def _shared_source(shared: CliqueClaim, own: Mapping[str, bytes]) -> ClaimSource | frozenset[str]:
    entry = shared.entry
    if entry.namespace or entry.name not in own:
        return ClaimSource(False, entry.name, entry.namespace)
    try:
        return device_classes_in(msgspec.json.decode(own[entry.name]).get("spec") or {})
    except (AttributeError, TypeError):
        return frozenset()  # the API server reports it
