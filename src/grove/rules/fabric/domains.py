"""Defaulting and validation of fabric domains, for the automatic mode and for cliques that name their domain.

The automatic mode is decided when a set is created and never changes: sets that exist when the administrator
enables it stay as they are, and a clique cannot leave a domain that its pods use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grove.api.field_errors import FieldError, forbidden, invalid, unsupported
from grove.api.naming import annotations as keys
from grove.api.types.pod import PodSpecView, read_template
from grove.api.types.podcliqueset import CliqueTemplate
from grove.fabrics import requirements
from grove.fabrics.provider import FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirement, Mode
from grove.rules import decode
from grove.rules.decode import ObjectFormatError, Workload
from grove.rules.model import Facts

Body = dict[str, Any]

_AUTO = f"metadata.annotations.{keys.AUTO_MNNVL}"
_AUTO_VALUES = (keys.AUTO_MNNVL_ENABLED, keys.AUTO_MNNVL_DISABLED)
_CLIQUES = "spec.template.cliques"
_OPT_OUT = f'{keys.AUTO_MNNVL}: "{keys.AUTO_MNNVL_DISABLED}"'


def with_auto_annotation(body: Body, facts: Facts) -> Body:
    """A new set that uses accelerators, with the annotation for automatic domains; the same object if it has
    an annotation about them already, or if the automatic mode is disabled. Never raises."""
    provider = facts.fabrics.auto
    if provider is None or not facts.network.auto_mnnvl_enabled:
        return body
    try:
        workload = decode.workload(body)
    except (ObjectFormatError, RecursionError):
        return body  # validation reports it
    annotations, template = workload.metadata.annotations, workload.template
    if keys.AUTO_MNNVL in annotations or requirements.mnnvl_groups(annotations, template):
        return body
    by_claim = requirements.claims_of(annotations)
    if not any(
        requirements.uses_accelerators(clique, provider, by_claim.get(clique.name, ()))
        for clique in template.cliques
    ):
        return body
    updated = {**(body["metadata"].get("annotations") or {}), keys.AUTO_MNNVL: keys.AUTO_MNNVL_ENABLED}
    return {**body, "metadata": {**body["metadata"], "annotations": updated}}


def names_domains(body: Body, facts: Facts) -> bool:
    """Whether cliques of a set name domains, which other sets may share. Never raises."""
    try:
        cliques = decode.workload(body).template.cliques
    except (ObjectFormatError, RecursionError):
        return False
    return any(
        provider.annotation_key in clique.annotations for provider in facts.fabrics for clique in cliques
    )


def on_create(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors of the fabric annotations of a new set and its cliques."""
    value = workload.metadata.annotations.get(keys.AUTO_MNNVL)
    if value is not None and value not in _AUTO_VALUES:
        allowed = " or ".join(f'"{each}"' for each in _AUTO_VALUES)
        yield invalid(_AUTO, value, f"must be {allowed}")
    elif value == keys.AUTO_MNNVL_ENABLED and not facts.network.auto_mnnvl_enabled:
        yield invalid(
            _AUTO,
            value,
            "MNNVL is not enabled in the operator's configuration: set network.autoMNNVLEnabled, or remove "
            f"the annotation {keys.AUTO_MNNVL}",
        )
    automatic = facts.network.auto_mnnvl_enabled and value != keys.AUTO_MNNVL_DISABLED
    for provider in facts.fabrics:
        for index, clique in enumerate(workload.template.cliques):
            yield from _named(_VendorClique(workload, index, clique, provider), facts, automatic)
        yield from _options(workload, provider, facts)
    yield from _collisions(workload, facts)
    yield from _reserved(workload, facts)


def on_update(old: Workload, new: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors for changed fabric annotations, all of which are immutable, and for new claims with a reserved
    name: the pods of a clique would leave its domain. Cliques are matched by name."""
    for key in (keys.AUTO_MNNVL, keys.MNNVL_CLAIMS):
        path = f"metadata.annotations.{key}"
        yield from _fixed(path, key, old.metadata.annotations, new.metadata.annotations)
    known = {clique.name: clique.annotations for clique in old.template.cliques}
    for provider in facts.fabrics:
        defaults: dict[str, str | None] = {key: values[0] for key, values in provider.options.items()}
        for key, default in defaults.items() if provider.supports_auto else ():
            path = f"metadata.annotations.{key}"
            yield from _fixed(path, key, old.metadata.annotations, new.metadata.annotations, default)
        for key, default in {provider.annotation_key: None, provider.scope_key: None, **defaults}.items():
            for index, clique in enumerate(new.template.cliques):
                if (before := known.get(clique.name)) is not None:
                    path = f"{_CLIQUES}[{index}].annotations.{key}"
                    yield from _fixed(path, key, before, clique.annotations, default)
    stored = set(map(str, _reserved(old, facts)))
    yield from (error for error in _reserved(new, facts) if str(error) not in stored)


class _VendorClique:
    """The annotations of a clique for one vendor, and their paths."""

    def __init__(
        self, workload: Workload, index: int, clique: CliqueTemplate, provider: FabricDomainProvider
    ) -> None:
        self.provider, self.name = provider, clique.name
        self.value = clique.annotations.get(provider.annotation_key)
        self.scope = clique.annotations.get(provider.scope_key)
        self.group = clique.annotations.get(keys.MNNVL_GROUP)
        annotations = f"{_CLIQUES}[{index}].annotations"
        self.path, self.scope_path = (
            f"{annotations}.{provider.annotation_key}",
            f"{annotations}.{provider.scope_key}",
        )
        self._workload = workload

    @property
    def grouped(self) -> bool:
        """Whether the clique is in a scaling group."""
        groups = self._workload.template.pod_clique_scaling_groups
        return any(self.name in group.clique_names for group in groups)


def _named(place: _VendorClique, facts: Facts, automatic: bool) -> Iterator[FieldError]:
    provider, kind = place.provider, place.provider.api.name
    yield from _scoped(place)
    if place.value is None:
        return
    if automatic and provider.supports_auto:
        yield forbidden(
            place.path,
            "automatic MNNVL injection is enabled for this PodCliqueSet and each of its replicas; explicit "
            f"{kind} annotations require opting out of automatic injection with {_OPT_OUT}",
        )
    if not facts.network.explicit_compute_domains:
        yield forbidden(
            place.path,
            f"explicit {kind}s are disabled by the administrator: remove the annotation, or set "
            "network.explicitComputeDomains in the operator's configuration",
        )
    if place.group is not None and provider.supports_auto:
        yield forbidden(place.path, f"cannot be combined with {keys.MNNVL_GROUP}: use one of them")
    scope = Scope(place.scope) if place.scope in set(Scope) else Scope.SHARED
    yield from (invalid(place.path, place.value, wrong) for wrong in provider.validate(place.value, scope))


def _scoped(place: _VendorClique) -> Iterator[FieldError]:
    if place.scope is None:
        return
    if place.scope not in set(Scope):
        allowed = ", ".join(f'"{scope}"' for scope in Scope)
        yield invalid(place.scope_path, place.scope, f"must be one of {allowed}")
    if place.value is None:
        yield invalid(
            place.scope_path, place.scope, f"has no effect without {place.provider.annotation_key}: set both"
        )
    if place.scope == Scope.GROUP_REPLICA and not place.grouped:
        yield invalid(
            place.scope_path,
            place.scope,
            f'clique {place.name} is in no scaling group: use "{Scope.REPLICA}", or add the clique to one',
        )


def _options(workload: Workload, provider: FabricDomainProvider, facts: Facts) -> Iterator[FieldError]:
    """Errors of the options of domains: values that are not supported, and values that differ between the
    cliques and sets that share a domain."""
    first: dict[tuple[str, str, Scope], tuple[str, str | None]] = {
        (key, requirement.base, requirement.scope): (
            f"PodCliqueSet {name}",
            dict(requirement.options).get(key),
        )
        for name, requirement in facts.domain_sharers
        if requirement.vendor == provider.vendor
        for key in provider.options
    }
    for key, supported in provider.options.items():
        places = [("metadata.annotations", workload.metadata.annotations)] if provider.supports_auto else []
        for index, clique in enumerate(workload.template.cliques):
            path, value = f"{_CLIQUES}[{index}].annotations", clique.annotations.get(key)
            places.append((path, clique.annotations))
            if name := clique.annotations.get(provider.annotation_key):
                domain = (key, name, requirements.scope_of(clique, provider))
                sharer, other = first.setdefault(domain, (f"{_CLIQUES}[{index}]", value))
                if (other or supported[0]) != (value or supported[0]):
                    remedy = (
                        f'has the value "{other}": use the same' if other else "does not set it: remove it"
                    )
                    yield invalid(f"{path}.{key}", value, f"{sharer} shares the domain and {remedy}")
        for path, carried in places:
            if (given := carried.get(key)) is not None and given not in supported:
                yield unsupported(f"{path}.{key}", given, supported)


def _collisions(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors for two different domains of the set whose objects could get the same name."""
    for provider in facts.fabrics:
        named: dict[DomainRequirement, int] = {}
        for index, clique in enumerate(workload.template.cliques):
            if value := clique.annotations.get(provider.annotation_key):
                requirement = DomainRequirement(
                    provider.vendor, Mode.EXPLICIT, requirements.scope_of(clique, provider), value
                )
                named.setdefault(requirement, index)
        for requirement, index in named.items():
            for other in requirement.name_conflicts():
                if other in named:
                    yield _collision(provider, *sorted(((named[other], other), (index, requirement))))


def _collision(
    provider: FabricDomainProvider,
    first: tuple[int, DomainRequirement],
    second: tuple[int, DomainRequirement],
) -> FieldError:
    (before, one), (index, other) = first, second
    return invalid(
        f"{_CLIQUES}[{index}].annotations.{provider.annotation_key}",
        other.base,
        f"{provider.api.name} names would collide with those of {_CLIQUES}[{before}], "
        f'"{one.base}" with scope {one.scope}: choose another name',
    )


def _reserved(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors for claims with the name of the operator's own claim, in cliques that get it."""
    domain_requirements = requirements.of_template(
        workload.metadata.effective_name, workload.metadata.annotations, workload.template, facts.fabrics
    )
    for index, clique in enumerate(workload.template.cliques):
        taken = {
            facts.fabrics.of(requirement.vendor).claim_name
            for requirement in domain_requirements.get(clique.name, ())
        }
        if taken:
            path = f"{_CLIQUES}[{index}].spec.podSpec"
            for where, name in _claims(read_template(clique.spec.pod_spec), path):
                if name in taken:
                    yield forbidden(where, f"the claim name {name} is reserved for the operator: rename it")


def _claims(pod: PodSpecView, path: str) -> Iterator[tuple[str, str]]:
    for index, claim in enumerate(pod.resource_claims):
        yield f"{path}.resourceClaims[{index}].name", claim.name
    for field, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for number, container in enumerate(containers):
            for index, reference in enumerate(container.resources.claims):
                yield f"{path}.{field}[{number}].resources.claims[{index}].name", reference.name


def _fixed(
    path: str, key: str, old: Mapping[str, str], new: Mapping[str, str], default: str | None = None
) -> Iterator[FieldError]:
    """Errors if an annotation changed; leaving it out is the same as its default."""
    was, is_ = old.get(key), new.get(key)
    if {was, is_} <= {None, default}:
        return
    if was is None and is_ is not None:
        yield forbidden(path, f"{key} cannot be added after creation")
    elif was is not None and is_ is None:
        yield forbidden(path, f"{key} cannot be removed after creation")
    elif was != is_:
        yield invalid(path, is_, f'{key} is immutable: it cannot be changed from "{was}" to "{is_}"')
