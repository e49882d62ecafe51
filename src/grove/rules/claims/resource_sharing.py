"""Validation of shared claims: `resourceClaimTemplates` of the set, and `resourceSharing` of the set, its
scaling groups and its cliques."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from grove.api.field_errors import FieldError, duplicate, invalid, not_found, required
from grove.api.naming import names
from grove.api.types.common import (
    AutoScalingConfig,
    GroupResourceSharing,
    ResourceSharing,
    SetResourceSharing,
    SharingScope,
)
from grove.api.types.podcliqueset import ScalingGroupTemplate
from grove.rules import syntax
from grove.rules.claims import claim_names
from grove.rules.decode import Workload
from grove.rules.syntax import duplicates

_TEMPLATE = "spec.template"
_TOO_LONG = (
    f"the names of its claims would have more than {syntax.MAX_LABEL} characters, and pods could not refer "
    "to them: shorten it, or the names of set, scaling group and clique"
)


def errors(workload: Workload) -> Iterator[FieldError]:
    """Errors of shared claims, on all three levels."""
    template = workload.template
    yield from _templates(workload)
    internal = {claim.name for claim in template.resource_claim_templates}
    path = f"{_TEMPLATE}.resourceSharing"
    yield from _shared(path, template.resource_sharing, internal)
    yield from _set_filters(path, workload)
    for index, clique in enumerate(template.cliques):
        yield from _shared(f"{_TEMPLATE}.cliques[{index}].resourceSharing", clique.resource_sharing, internal)
    for index, group in enumerate(template.pod_clique_scaling_groups):
        path = f"{_TEMPLATE}.podCliqueScalingGroups[{index}].resourceSharing"
        yield from _shared(path, group.resource_sharing, internal)
        yield from _group_filters(path, group.resource_sharing, group.clique_names)
    yield from _names(workload)
    yield from claim_names.errors(workload)


def _templates(workload: Workload) -> Iterator[FieldError]:
    path = f"{_TEMPLATE}.resourceClaimTemplates"
    claims = workload.template.resource_claim_templates
    for index, (claim, view) in enumerate(zip(claims, workload.claims, strict=True)):
        if not claim.name:
            yield required(f"{path}[{index}].name")
        if not view.spec.devices.requests:
            place = f"{path}[{index}].templateSpec.spec.devices.requests"
            yield required(place, "at least one device request is required")
    yield from (
        duplicate(f"{path}.name", name) for name in duplicates(claim.name for claim in claims) if name
    )


def _shared(path: str, shared: Sequence[ResourceSharing], internal: Collection[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, each in enumerate(shared):
        place = f"{path}[{index}]"
        if not each.name:
            yield required(f"{place}.name")
        elif each.name in seen:
            yield duplicate(f"{place}.name", each.name)
        seen.add(each.name)
        if each.namespace and each.name in internal:
            yield invalid(
                f"{place}.namespace",
                each.namespace,
                f"must be empty: {each.name} is one of spec.template.resourceClaimTemplates",
            )


def _set_filters(path: str, workload: Workload) -> Iterator[FieldError]:
    shared: Sequence[SetResourceSharing] = workload.template.resource_sharing
    cliques = {clique.name for clique in workload.template.cliques} if shared else set()
    groups = {group.name for group in workload.template.pod_clique_scaling_groups} if shared else set()
    for index, each in enumerate(shared):
        if (chosen := each.filter) is None:
            continue
        place = f"{path}[{index}].filter"
        if not chosen.child_clique_names and not chosen.child_scaling_group_names:
            yield required(
                place, "must name at least one clique or scaling group; remove the filter to share with all"
            )
        yield from _unknown(f"{place}.childCliqueNames", chosen.child_clique_names, cliques)
        yield from _unknown(f"{place}.childScalingGroupNames", chosen.child_scaling_group_names, groups)


def _group_filters(
    path: str, shared: Sequence[GroupResourceSharing], members: Sequence[str]
) -> Iterator[FieldError]:
    known = set(members) if shared else set()
    for index, each in enumerate(shared):
        if (chosen := each.filter) is None:
            continue
        place = f"{path}[{index}].filter"
        if not chosen.child_clique_names:
            why = "must name at least one clique of the group; remove the filter to share with all"
            yield required(place, why)
        yield from _unknown(f"{place}.childCliqueNames", chosen.child_clique_names, known)


def _unknown(path: str, named: Sequence[str], known: Collection[str]) -> Iterator[FieldError]:
    yield from (not_found(f"{path}[{at}]", name) for at, name in enumerate(named) if name not in known)


def _names(workload: Workload) -> Iterator[FieldError]:
    """Errors for claims with names that pods could not refer to, at the highest indices that the counts and
    autoscaling bounds of the set allow."""
    template, set_name = workload.template, workload.metadata.effective_name
    last = _last(workload.spec.replicas)
    yield from _named(f"{_TEMPLATE}.resourceSharing", template.resource_sharing, set_name, last)
    groups: dict[str, ScalingGroupTemplate] = {}
    for index, group in enumerate(template.pod_clique_scaling_groups):
        groups |= dict.fromkeys(group.clique_names, group)
        path = f"{_TEMPLATE}.podCliqueScalingGroups[{index}].resourceSharing"
        name = names.group(set_name, last, group.name)
        yield from _named(path, group.resource_sharing, name, _last(group.replicas, group.scale_config))
    for index, clique in enumerate(template.cliques):
        name = names.clique(set_name, last, clique.name)
        if (around := groups.get(clique.name)) is not None:
            group_name = names.group(set_name, last, around.name)
            last_replica = _last(around.replicas, around.scale_config)
            name = names.member_clique(group_name, last_replica, clique.name)
        path, spec = f"{_TEMPLATE}.cliques[{index}].resourceSharing", clique.spec
        last_pod = _last(spec.replicas, spec.auto_scaling_config)
        yield from _named(path, clique.resource_sharing, name, last_pod)


def _last(replicas: int, config: AutoScalingConfig | None = None) -> int:
    """The highest index of these replicas."""
    return max(replicas, config.max_replicas if config else 0, 1) - 1


def _named(path: str, shared: Sequence[ResourceSharing], owner: str, last: int) -> Iterator[FieldError]:
    for index, each in enumerate(shared):
        place = f"{path}[{index}].name"
        for_all = each.scope is SharingScope.ALL_REPLICAS
        name = (
            names.claim_for_all_replicas(owner, each.name)
            if for_all
            else names.claim_for_replica(owner, last, each.name)
        )
        wrong = [*syntax.label(each.name)] if each.name else []
        if wrong:
            why = f"must be valid in the names of claims that pods refer to: {wrong[0]}"
            yield invalid(place, each.name, why)
        elif len(name) > syntax.MAX_LABEL:
            yield invalid(place, each.name, _TOO_LONG)
