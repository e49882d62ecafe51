"""Accelerators that pods ask for by claims only, where the administrator wants them to count.

What a claim is for is written in a ResourceClaimTemplate, or in a claim, that may change or go. So it is
looked at once, when the set is made, and what was found is written on the set: from then on it is plain what
counts.
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
    """Where it is written what a pod claims."""

    claim: bool
    """Whether it is a ResourceClaim; else it is a ResourceClaimTemplate."""
    name: str
    namespace: str = ""
    """Where it is; empty: beside the set."""

    def __str__(self) -> str:
        kind = "ResourceClaim" if self.claim else "ResourceClaimTemplate"
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class _UsedClaim(NamedTuple):
    """A claim that pods of a clique use."""

    clique: str
    claim: str
    """What the pods call it."""
    source: ClaimSource | frozenset[str]
    """Where it is written what it is for; or the DeviceClasses that it is for."""
    shared_by: str = ""
    """Who holds it together, if several pods do."""


def claim_sources(body: Body, facts: Facts) -> tuple[ClaimSource, ...] | None:
    """What is to be looked at before a new set is marked; None if claims do not count. Never raises."""
    network, provider = facts.network, facts.fabrics.auto
    if not (network.auto_mnnvl_enabled and network.auto_mnnvl_detect_dra) or provider is None:
        return None
    try:
        workload = decode.workload(body)
    except (ObjectFormatError, RecursionError):
        return None  # for validation to name
    said = workload.metadata.annotations
    if keys.MNNVL_CLAIMS in said or said.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_DISABLED:
        return None
    named = (asked.source for asked in _claims(workload))
    return tuple(dict.fromkeys(source for source in named if isinstance(source, ClaimSource)))


def with_claim_annotation(body: Body, facts: Facts, classes: Classes) -> tuple[Body, list[str]]:
    """The set with a note of the claims that are for accelerators, and what could not be found out. Pods that
    share accelerators share their node, which has one channel: a domain would keep all but one from
    starting, so they are in none."""
    provider = facts.fabrics.auto
    counting = provider.accelerator_classes if provider is not None else frozenset()
    found, warnings = [], []
    for clique, claim, source, shared_by in _claims(decode.workload(body)):
        asked = classes.get(source) if isinstance(source, ClaimSource) else source
        if asked is None:
            # Of a template in another namespace it is not disclosed whether it exists.
            other = isinstance(source, ClaimSource) and source.namespace
            why = "does not exist or is not shared with this namespace" if other else "is not there"
            warnings.append(f"{source} {why}: whether it is for accelerators is not known")
        elif asked & counting:
            if shared_by:
                warnings.append(
                    f"{shared_by}, and their node has one channel: they get no domain by themselves"
                )
            else:
                found.append(f"{clique}/{claim}")
    warnings = list(dict.fromkeys(warnings))
    if not found:
        return body, warnings
    noted = ",".join(dict.fromkeys(found))
    written = {**(body["metadata"].get("annotations") or {}), keys.MNNVL_CLAIMS: noted}
    return {**body, "metadata": {**body["metadata"], "annotations": written}}, warnings


def device_classes_in(spec: Mapping[str, Any]) -> frozenset[str]:
    """The DeviceClasses that the spec of a claim asks for, in any version of it."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    asked = (
        each
        for request in requests
        for each in (request, request.get("exactly") or {}, *(request.get("firstAvailable") or ()))
    )
    return frozenset(str(each["deviceClassName"]) for each in asked if each.get("deviceClassName"))


def _claims(workload: Workload) -> Iterator[_UsedClaim]:
    """Those of the pods' own specs, and those that the set gives them to share."""
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
        return frozenset()  # for the API server to name
