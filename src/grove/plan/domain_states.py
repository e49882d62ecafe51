"""What a fabric domain is to a set that needs it, and what to say about it."""

from __future__ import annotations

from enum import StrEnum

from grove.api import labels
from grove.api.meta import ObjectMeta
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.fabrics.resolve import Demand, Mode
from grove.plan.pods import controller_uid


class State(StrEnum):
    """What a domain is to a set that needs it."""

    USABLE = "usable"
    MISSING = "missing"
    NOT_YET = "not yet ours"
    TERMINATING = "terminating"
    CONFLICT = "conflict"
    TEMPLATE_TAKEN = "its template is somebody else's"
    UNSERVED = "not served"


def is_managed(domain: Domain) -> bool:
    """Whether a domain was made by us, whoever for."""
    carried = domain.metadata.labels
    return (
        carried.get(labels.MANAGED_BY) == labels.OPERATOR
        and carried.get(labels.COMPONENT) == labels.Component.COMPUTE_DOMAIN
    )


def mode_of(domain: Domain) -> str:
    """For whom it was made: one set's replica, or whoever names it. Upstream's say nothing."""
    return domain.metadata.labels.get(labels.COMPUTE_DOMAIN_MODE, Mode.AUTO.value)


def state_of(domain: Domain | None, demand: Demand, workload: PodCliqueSet) -> State:
    """What a domain, or its absence, is to a set."""
    if domain is None:
        return State.MISSING
    meta, uid = domain.metadata, workload.metadata.uid
    if demand.mode is Mode.AUTO:
        return _own(domain, workload)
    if is_managed(domain) and mode_of(domain) != Mode.EXPLICIT:
        return State.CONFLICT
    if meta.deletion_timestamp is not None:
        return State.TERMINATING
    if not is_managed(domain) or any(owner.uid == uid for owner in meta.owner_references):
        return State.USABLE
    return State.NOT_YET


def template_state(provider: FabricDomainProvider, domain: Domain, template: ObjectMeta | None) -> State:
    """The state of a domain by the ResourceClaimTemplate that has the name of its own. One that is not there
    is the driver's business: pods wait for it by themselves."""
    if template is None or provider.owns_template(domain, template):
        return State.USABLE
    return State.TEMPLATE_TAKEN if template.deletion_timestamp is None else State.NOT_YET


def joined(state: State, of_template: State) -> State:
    """The state of a domain whose template is in that state: claims that are made from somebody else's are
    for something else."""
    return of_template if state is State.USABLE else state


def _own(domain: Domain, workload: PodCliqueSet) -> State:
    """A domain that is for one set alone."""
    meta = domain.metadata
    if is_managed(domain) and mode_of(domain) == Mode.AUTO:
        if (controller := controller_uid(meta)) == workload.metadata.uid:
            return State.USABLE if meta.deletion_timestamp is None else State.TERMINATING
        if not controller and meta.labels.get(labels.PART_OF) == workload.metadata.name:
            return State.NOT_YET if meta.deletion_timestamp is None else State.TERMINATING
    return State.CONFLICT if meta.deletion_timestamp is None else State.TERMINATING


def trouble(state: State, provider: FabricDomainProvider, name: str, template: str = "") -> str:
    """What only a person can mend about a domain; empty if it will come by itself."""
    kind = provider.api.name
    if state is State.UNSERVED:
        return f"pods wait for {kind} {name}: {provider.api.crd_name} is not served: {provider.advice}"
    if state is State.TERMINATING:
        return (
            f"{kind} {name} is being deleted while it is needed, and goes when nobody needs it: new pods "
            "wait; scale in past the replica and out again, or delete the PodCliqueSet"
        )
    if state is State.CONFLICT:
        return f"{kind} {name} belongs to somebody else: delete it or rename the workload"
    if state is State.TEMPLATE_TAKEN:
        return (
            f"ResourceClaimTemplate {template or name}, by which pods join {kind} {name}, belongs to "
            "somebody else: delete it or rename the workload"
        )
    return ""
