"""The state of a fabric domain for a set that needs it, and the error message for it."""

from __future__ import annotations

from grove.api.formats.name_list import name_list
from grove.api.meta import ObjectMeta
from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirement, Mode
from grove.fabrics.resolved import DomainState
from grove.fabrics.unserved import unserved_kind
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
    """The state of a domain by its claim template, if that exists."""
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


def state_message(
    state: DomainState,
    provider: FabricDomainProvider,
    name: str,
    template: str = "",
    found: Domain | None = None,
) -> str:
    """The error message for a state that only a user can resolve; empty for states that resolve by
    themselves. `found` is the domain object of that name."""
    kind = provider.api.name
    if state in (DomainState.NOT_SERVED, DomainState.OUTDATED):
        unserved = unserved_kind(provider, outdated=state is DomainState.OUTDATED)
        return f"pods wait for {kind} {name}: {unserved}"
    if state is DomainState.NO_GROUP:
        return (
            f"{kind} {name} is for a replica of a scaling group, and the clique is in none: recreate the set "
            f"with the clique in a group, or with {provider.scope_key}: {Scope.REPLICA}"
        )
    if state is DomainState.TERMINATING:
        return _terminating_message(kind, name, found)
    if state is DomainState.CONFLICT:
        return _conflict_message(kind, name, found)
    if state is DomainState.TEMPLATE_CONFLICT:
        return (
            f"ResourceClaimTemplate {template or name}, by which pods join {kind} {name}, belongs to "
            "another owner: delete it or rename the workload"
        )
    return ""


def _terminating_message(kind: str, name: str, found: Domain | None) -> str:
    if found is None or is_managed(found):
        if found is not None and found.metadata.annotations.get(keys.RECREATE) == keys.TRUE:
            return f"{kind} {name} is being deleted, and is created again when its pods are gone"
        return (
            f"{kind} {name} is being deleted while it is needed: new pods wait; annotate it with "
            f"{keys.RECREATE}={keys.TRUE} to restart its pods and create it again, or scale in past the "
            "replica and out again"
        )
    finalizers = name_list(found.metadata.finalizers)
    held = f"its finalizers ({finalizers}) are removed by their owners" if finalizers else "it is gone"
    return (
        f"{kind} {name}, which is not managed by Grove, is being deleted: new pods wait until {held}, and "
        "another one is created then"
    )


def _conflict_message(kind: str, name: str, found: Domain | None) -> str:
    """A domain of another set is not to be deleted: that set needs it."""
    owner = found.metadata.labels.get(labels.PART_OF) if found is not None and is_managed(found) else ""
    if owner:
        return f"{kind} {name} belongs to PodCliqueSet {owner}: use another name for this set or its domain"
    return f"{kind} {name} belongs to another owner: delete it or rename the workload"
