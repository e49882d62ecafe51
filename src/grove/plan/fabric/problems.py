"""Why the pods of a domain that exists cannot use it: the truth behind `ComputeDomainsReady`.

Everything follows from the domain, its pods, the labels of their nodes and the time. The plan of the domain
checks again when a problem becomes due, and the sets and replicas that use the domain follow its report.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from grove import timing
from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.formats.name_list import name_list
from grove.api.naming import annotations as keys
from grove.fabrics.domain_pods import DomainPods
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan.timestamps import earliest, timestamp


class DomainProblem(Struct, frozen=True, gc=False):
    """Why pods cannot use a domain."""

    reason: Reason
    message: str


def problems_of(domain: ResolvedDomain, now: float) -> list[DomainProblem]:
    """The problems of a domain that a set requires, the most severe first."""
    if domain.found is None:
        return []
    lacks_template = domain.state is DomainState.TEMPLATE_MISSING
    found = list(found_problems(domain.provider, domain.found, domain.pods, now, lacks_template))
    if domain.report.busy:
        found.append(DomainProblem(Reason.CHANNEL_BUSY, domain.report.busy))
    return sorted(found, key=lambda each: SEVERITY.index(each.reason))


SEVERITY = (
    Reason.CLAIM_NOT_CREATED,
    Reason.RECREATED,
    Reason.NODE_HELD,
    Reason.ONE_MEMBER_POD_PER_NODE,
    Reason.CHANNEL_BUSY,
    Reason.FABRIC_SPLIT,
)


def found_problems(
    provider: FabricDomainProvider, found: Domain, pods: DomainPods, now: float, lacks_template: bool
) -> Iterator[DomainProblem]:
    """The problems of an existing domain, without those of channels."""
    named = f"{provider.api.name} {found.metadata.name}"
    if lacks_template and now >= _template_due(found):
        yield DomainProblem(
            Reason.CLAIM_NOT_CREATED,
            f"{named} has no ResourceClaimTemplate {provider.template_name(found)} after "
            f"{timing.CLAIM_TEMPLATE_WAIT:g} s, so its pods are not created: see the log of the driver's "
            "controller",
        )
    if pods.former:
        yield DomainProblem(
            Reason.RECREATED,
            f"{named} was created again, and pods {name_list(pods.former)} use claims of the former one: "
            "delete these pods",
        )
    if held := [node.name for node in pods.held if now >= _held_due(node.since)]:
        yield DomainProblem(
            Reason.NODE_HELD,
            f"pods of {named} cannot start on {name_list(held)}: label {provider.domain_label} of the node "
            "names another domain; if that is gone, remove the label",
        )
    if split := split_problem(provider, found, pods):
        yield split


def split_problem(provider: FabricDomainProvider, found: Domain, pods: DomainPods) -> DomainProblem | None:
    """The problem of a domain whose nodes are in several partitions, between which there are no links, or in
    none."""
    named, view = f"{provider.api.name} {found.metadata.name}", provider.observe(found)
    advice = f"annotation {keys.PACK_DOMAINS}: required on the set keeps pods that start in one"
    if len(partitions := all_partitions(provider, found, pods)) > 1:
        return DomainProblem(
            Reason.FABRIC_SPLIT,
            f"{named} is split over {len(partitions)} partitions ({name_list(partitions)}), between which "
            f"the fabric has no links: {advice}",
        )
    if view.without_partition and len(pods.nodes.union(view.nodes)) > 1:
        return DomainProblem(
            Reason.FABRIC_SPLIT,
            f"nodes {name_list(view.without_partition)} of {named} are in no partition, so the fabric does "
            f"not join them with its other nodes: check the fabric of these nodes; {advice}",
        )
    return None


def all_partitions(provider: FabricDomainProvider, found: Domain, pods: DomainPods) -> list[str]:
    """The partitions of the fabric that a domain and its pods are in."""
    return sorted(pods.partitions.union(provider.observe(found).partitions))


def next_check(found: Domain, pods: DomainPods, now: float, lacks_template: bool) -> float | None:
    """When the next of these problems may begin or end without an event."""
    due = [_template_due(found)] if lacks_template else []
    due += [_held_due(node.since) for node in pods.held]
    if any(at <= now for at in due):
        due = [*(at for at in due if at > now), now + timing.UNSCHEDULABLE_WAIT]
    return earliest(*due)


def _template_due(found: Domain) -> float:
    return timestamp(found.metadata.creation_timestamp) + timing.CLAIM_TEMPLATE_WAIT


def _held_due(since: float) -> float:
    return since + timing.HELD_NODE_WAIT
