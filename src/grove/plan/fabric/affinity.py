"""Keeps the pods of a fabric domain in one partition where the scheduler alone chooses their nodes: by pod
affinity to the other pods of the domain.

Kubernetes applies a required term to the first pod of a domain only as far as the node has the label, since
the pod matches the term itself. Of several required terms it counts only pods that match all of them, so that
the first pod of each clique would escape: beside another one, the term is only preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from grove import timing
from grove.api.configuration.types import DomainPacking
from grove.api.formats.name_list import name_list
from grove.api.naming import labels
from grove.fabrics.resolved import ResolvedDomain
from grove.plan.desired.expand import Clique, Gang
from grove.plan.desired.podspec import REQUIRED
from grove.schedulers.backend import Body, PodAdditions, with_pod_additions


def packing_affinity(clique: Clique, spec: Mapping[str, Any]) -> PodAdditions:
    """The affinity of a clique's pods that have this spec otherwise."""
    domain = _packed_domain(clique)
    if domain is None:
        return PodAdditions()
    selector = {"matchLabels": {labels.COMPUTE_DOMAIN: domain.name}}
    term: Body = {"topologyKey": domain.provider.partition_label, "labelSelector": selector}
    if domain.packing is DomainPacking.REQUIRED and not _requires_pods(spec):
        return PodAdditions(required_affinity=(term,))
    return PodAdditions(preferred_affinity=({"weight": timing.PREFERENCE_WEIGHT, "podAffinityTerm": term},))


def requires_partition(gang: Gang) -> bool:
    """Whether pods of a gang must be in one partition of their fabric domain."""
    return any(
        domain.packing is DomainPacking.REQUIRED
        for clique in gang.cliques
        for domain in clique.fabric_domains
    )


def only_preferred(gang: Gang, additions_of: Callable[[str], PodAdditions | None]) -> str:
    """Why required partitions are only preferred by the scheduler of a gang; empty if they are not.
    `additions_of`: what the scheduler adds to new pods of a clique."""
    own, added = list[str](), list[str]()
    for clique in filter(_requires_partition, gang.cliques):
        spec = _decoded(bytes(clique.template.spec.pod_spec))
        if _requires_pods(spec):
            own.append(clique.name)
        elif (additions := additions_of(clique.name)) is not None:
            pod = with_pod_additions({"metadata": {}, "spec": spec}, additions)
            added += [clique.name] if _requires_pods(pod["spec"]) else []
    if own:
        return _message(f"Pods of {name_list(own)} have a required pod affinity of their own", "Remove it")
    if added:
        outside = "join no group of their scheduler, and a required pod affinity keeps them with their gang"
        return _message(f"New pods of {name_list(added)} {outside}", "Delete all pods of the gang")
    return ""


def _message(cause: str, remedy: str) -> str:
    return (
        f"{cause}, beside which Kubernetes does not keep another one: one partition for their fabric domain "
        f"is only preferred. {remedy}, or use placement"
    )


def _requires_partition(clique: Clique) -> bool:
    domain = _packed_domain(clique)
    return domain is not None and domain.packing is DomainPacking.REQUIRED


def _packed_domain(clique: Clique) -> ResolvedDomain | None:
    """The domain that the label of the pods names, if it is packed."""
    first = next(iter(clique.fabric_domains), None)
    return None if first is None or first.packing is DomainPacking.OFF else first


def _requires_pods(spec: Mapping[str, Any]) -> bool:
    """Whether pods with this spec have a required pod affinity."""
    near = (spec.get("affinity") or {}).get("podAffinity") or {}
    return bool(near.get(REQUIRED))


@lru_cache(maxsize=1024)
def _decoded(raw: bytes) -> Body:
    spec: Body = msgspec.json.decode(raw)
    return spec
