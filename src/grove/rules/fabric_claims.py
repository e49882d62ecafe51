"""Accelerators that pods ask for by claims only, where the administrator wants them to count.

What a claim is for is written in a ResourceClaimTemplate, or in a claim, that may change or go. So it is
looked at once, when the set is made, and what was found is written on the set: from then on it is plain what
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from grove.api import annotations as keys
from grove.api.pods import PodClaim, read_template
from grove.rules import shape
from grove.rules.model import Facts
from grove.rules.shape import Misshapen, Workload

Body = dict[str, Any]
Classes = Mapping["Source", frozenset[str] | None]


class Source(NamedTuple):
    """Where it is written what a pod claims."""

    claim: bool
    """Whether it is a ResourceClaim; else it is a ResourceClaimTemplate."""
    name: str


def sources(body: Body, facts: Facts) -> tuple[Source, ...]:
    """What is to be looked at before a new set is marked. Never raises."""
    network, provider = facts.network, facts.fabrics.auto
    if not (network.auto_mnnvl_enabled and network.auto_mnnvl_detect_dra) or provider is None:
        return ()
    try:
        workload = shape.workload(body)
    except (Misshapen, RecursionError):
        return ()  # for validation to name
    said = workload.metadata.annotations
    if keys.MNNVL_CLAIMS in said or said.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_DISABLED:
        return ()
    return tuple(dict.fromkeys(source for _, _, source in _claims(workload)))


def counted(body: Body, facts: Facts, classes: Classes) -> tuple[Body, list[str]]:
    """The set with a note of the claims that are for accelerators, and what could not be found out."""
    provider = facts.fabrics.auto
    counting = provider.accelerator_classes if provider is not None else frozenset()
    found, warnings = [], []
    for clique, claim, source in _claims(shape.workload(body)):
        asked = classes.get(source)
        if asked is None:
            kind = "ResourceClaim" if source.claim else "ResourceClaimTemplate"
            warnings.append(f"{kind} {source.name} is not there: whether it is for accelerators is not known")
        elif asked & counting:
            found.append(f"{clique}/{claim}")
    if not found:
        return body, warnings
    written = {**(body["metadata"].get("annotations") or {}), keys.MNNVL_CLAIMS: ",".join(found)}
    return {**body, "metadata": {**body["metadata"], "annotations": written}}, warnings


def classes_in(spec: Mapping[str, Any]) -> frozenset[str]:
    """The DeviceClasses that the spec of a claim asks for, in any version of it."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    asked = (
        each
        for request in requests
        for each in (request, request.get("exactly") or {}, *(request.get("firstAvailable") or ()))
    )
    return frozenset(str(each["deviceClassName"]) for each in asked if each.get("deviceClassName"))


def _claims(workload: Workload) -> Iterator[tuple[str, str, Source]]:
    for clique in workload.template.cliques:
        for claim in read_template(clique.spec.pod_spec).resource_claims:
            if (source := _source(claim)) is not None:
                yield clique.name, claim.name, source


def _source(claim: PodClaim) -> Source | None:
    if claim.resource_claim_name:
        return Source(True, claim.resource_claim_name)
    if claim.resource_claim_template_name:
        return Source(False, claim.resource_claim_template_name)
    return None
