"""The state of a fabric domain for a set that needs it, and the error message for it."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.fabrics.requirements import DomainRequirement, Mode
from grove.fabrics.resolved import DomainState
from grove.plan.members.pod_state import controller_uid


def is_managed(domain: Domain) -> bool:
    """Whether the operator created a domain, for any set."""
    object_labels = domain.metadata.labels
    return (
        object_labels.get(labels.MANAGED_BY) == labels.OPERATOR
        and object_labels.get(labels.COMPONENT) == labels.ComponentLabel.COMPUTE_DOMAIN
    )


def mode_of(domain: Domain) -> str:
    """Whether it was created for one set's replica, or for all sets that name it. Upstream's have no such
    label."""
    return domain.metadata.labels.get(labels.COMPUTE_DOMAIN_MODE, Mode.AUTO.value)


def domain_state(
    provider: FabricDomainProvider,
    domain: Domain | None,
    template: ObjectMeta | None,
    requirement: DomainRequirement,
    workload: PodCliqueSet,
) -> DomainState:
    """The state of a domain, or of its absence, for a set. `template` has the name of its claim template:
    claims from a template of another owner are for another purpose."""
    if domain is None:
        return DomainState.MISSING
    by_owner = _exclusive_domain_state if requirement.mode is Mode.AUTO else _shared_domain_state
    state = by_owner(domain, workload)
    return _template_state(provider, domain, template) if state is DomainState.USABLE else state


def _template_state(
    provider: FabricDomainProvider, domain: Domain, template: ObjectMeta | None
) -> DomainState:
    """The state of a domain by its claim template. If that is missing the driver creates it, and pods wait
    for it by themselves."""
    if template is None or provider.owns_template(domain, template):
        return DomainState.USABLE
    return DomainState.TEMPLATE_CONFLICT if template.deletion_timestamp is None else DomainState.NOT_OWNED_YET


def _shared_domain_state(domain: Domain, workload: PodCliqueSet) -> DomainState:
    """The state of a domain that is for all sets that name it."""
    meta, uid = domain.metadata, workload.metadata.uid
    if is_managed(domain) and mode_of(domain) != Mode.EXPLICIT:
        return DomainState.CONFLICT
    if meta.deletion_timestamp is not None:
        return DomainState.TERMINATING
    if not is_managed(domain) or any(owner.uid == uid for owner in meta.owner_references):
        return DomainState.USABLE
    return DomainState.NOT_OWNED_YET


def _exclusive_domain_state(domain: Domain, workload: PodCliqueSet) -> DomainState:
    """The state of a domain that is for one set alone."""
    meta = domain.metadata
    if is_managed(domain) and mode_of(domain) == Mode.AUTO:
        if (controller := controller_uid(meta)) == workload.metadata.uid:
            return DomainState.USABLE if meta.deletion_timestamp is None else DomainState.TERMINATING
        if not controller and meta.labels.get(labels.PART_OF) == workload.metadata.name:
            return DomainState.NOT_OWNED_YET if meta.deletion_timestamp is None else DomainState.TERMINATING
    return DomainState.CONFLICT if meta.deletion_timestamp is None else DomainState.TERMINATING


def state_message(state: DomainState, provider: FabricDomainProvider, name: str, template: str = "") -> str:
    """The error message for a state that only a user can resolve; empty for states that resolve by
    themselves."""
    kind = provider.api.name
    if state is DomainState.NOT_SERVED:
        return f"pods wait for {kind} {name}: {provider.api.crd_name} is not served: {provider.advice}"
    if state is DomainState.TERMINATING:
        return (
            f"{kind} {name} is being deleted while it is needed, and is gone when no set needs it: new pods "
            "wait; scale in past the replica and out again, or delete the PodCliqueSet"
        )
    if state is DomainState.CONFLICT:
        return f"{kind} {name} belongs to another owner: delete it or rename the workload"
    if state is DomainState.TEMPLATE_CONFLICT:
        return (
            f"ResourceClaimTemplate {template or name}, by which pods join {kind} {name}, belongs to "
            "another owner: delete it or rename the workload"
        )
    return ""
