"""Which fabric domains each clique of a set requires: by name, by MNNVL group, or automatically.

    the clique's own annotation of a vendor     a domain of that name, shared as its scope says
    grove.io/mnnvl-group, nearest layer         one for each replica and group; `none`: no domain
    grove.io/auto-mnnvl: enabled on the set     one for each replica

For each vendor the first that is set decides. The last two apply only to cliques with accelerators, and a
group on any layer switches the automatic domains of the set off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from grove.api.naming import annotations as keys
from grove.api.naming import names
from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSet, PodCliqueSetTemplate
from grove.fabrics.pod_claims import accelerated_or_claimed
from grove.fabrics.provider import FabricDomainProvider, Policy, Scope
from grove.fabrics.registry import Providers

Body = dict[str, Any]


class Mode(StrEnum):
    """Whether a domain is for one replica of a set, or for all cliques that name it."""

    AUTO = "auto"
    EXPLICIT = "explicit"


class DomainRequirement(Struct, frozen=True):
    """The domain of one vendor that one clique requires."""

    vendor: str
    mode: Mode
    scope: Scope
    base: str
    """The first part of the domain's name: the set's name, or the name in the clique's annotation."""
    group: str = ""
    """The `grove.io/mnnvl-group`."""
    options: tuple[tuple[str, str], ...] = ()
    """The option annotations of the domain."""
    by_claim: tuple[str, ...] = ()
    """Claims of the pods that are for accelerators."""

    @property
    def policy(self) -> Policy:
        return Policy.ACCELERATED_OR_ALL if self.mode is Mode.EXPLICIT else Policy.ACCELERATED_ONLY

    def name(self, replica: int, group_replica: int = 0) -> str:
        """The name of the domain for one replica of the clique."""
        if self.mode is Mode.AUTO:
            if self.group:
                return names.grouped_compute_domain(self.base, replica, self.group)
            return names.compute_domain(self.base, replica)
        indices = {Scope.SHARED: (), Scope.REPLICA: (replica,), Scope.GROUP_REPLICA: (replica, group_replica)}
        return names.named_compute_domain(self.base, *indices[self.scope])

    def name_conflicts(self) -> Iterator[DomainRequirement]:
        """Other explicit requirements that could lead to a domain of the same name."""
        root, indices = self.base, _INDICES[self.scope]
        for scope in (scope for scope in Scope if _INDICES[scope] > indices):
            root, dash, index = root.rpartition("-")
            if not dash or not _is_index(index):
                return
            yield DomainRequirement(self.vendor, self.mode, scope, root)


_INDICES = {Scope.SHARED: 0, Scope.REPLICA: 1, Scope.GROUP_REPLICA: 2}

DomainRequirements = Mapping[str, tuple[DomainRequirement, ...]]
"""By the name of the clique in the set; in the order of vendors."""
_NO_REQUIREMENTS: DomainRequirements = {}


def domain_requirements(workload: PodCliqueSet, providers: Providers) -> DomainRequirements:
    """The requirements of a set's cliques; cliques without any are left out."""
    if not len(providers) or not _mentions_domains(workload, providers):
        return _NO_REQUIREMENTS
    return of_template(
        workload.metadata.name, workload.metadata.annotations, workload.spec.template, providers
    )


def of_template(
    set_name: str, annotations: Mapping[str, str], template: PodCliqueSetTemplate, providers: Providers
) -> DomainRequirements:
    """The same for a set in admission, of which there is no PodCliqueSet yet."""
    found: dict[str, tuple[DomainRequirement, ...]] = {}
    by_group, by_claim = mnnvl_groups(annotations, template), claims_of(annotations)
    automatic = annotations.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_ENABLED and not by_group
    for clique in template.cliques:
        required = tuple(
            requirement
            for provider in providers
            if (
                requirement := _requirement(
                    set_name, clique, provider, by_group, automatic, by_claim.get(clique.name, ())
                )
            )
            is not None
        )
        if required:
            found[clique.name] = tuple(
                _with_options(requirement, clique, annotations, providers) for requirement in required
            )
    return found


def mnnvl_groups(annotations: Mapping[str, str], template: PodCliqueSetTemplate) -> Mapping[str, str]:
    """The MNNVL group of each clique, or `none`: the clique's own annotation takes precedence over its
    scaling group's, and that over the set's. Empty if there is no such annotation."""
    of_set = annotations.get(keys.MNNVL_GROUP)
    layers = {
        name: group.annotations.get(keys.MNNVL_GROUP)
        for group in template.pod_clique_scaling_groups
        for name in group.clique_names
    }
    found = {}
    for clique in template.cliques:
        values = (clique.annotations.get(keys.MNNVL_GROUP), layers.get(clique.name), of_set)
        found[clique.name] = next((each for each in values if each is not None), None)
    if all(group is None for group in found.values()) and of_set is None:
        return {}
    return {name: group or keys.MNNVL_GROUP_NONE for name, group in found.items()}


def claims_of(annotations: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """By clique, the claims of its pods that are for accelerators, as admission has recorded them."""
    found: dict[str, tuple[str, ...]] = {}
    for written in filter(None, annotations.get(keys.MNNVL_CLAIMS, "").split(",")):
        clique, _, claim = written.partition("/")
        found[clique] = (*found.get(clique, ()), claim)
    return found


def uses_accelerators(
    clique: CliqueTemplate, provider: FabricDomainProvider, by_claim: Collection[str] = ()
) -> bool:
    """Whether any container of a clique requests the vendor's accelerators, or uses one of these claims."""
    chosen = accelerated_or_claimed(provider.uses_accelerator, by_claim)
    return any(map(chosen, _containers(bytes(clique.spec.pod_spec))))


def scope_of(clique: CliqueTemplate, provider: FabricDomainProvider) -> Scope:
    """The scope of the clique's domain; the default for unknown values."""
    value = clique.annotations.get(provider.scope_key, "")
    return Scope(value) if value in set(Scope) else Scope.SHARED


def _requirement(
    set_name: str,
    clique: CliqueTemplate,
    provider: FabricDomainProvider,
    by_group: Mapping[str, str],
    automatic: bool,
    by_claim: tuple[str, ...],
) -> DomainRequirement | None:
    if named := clique.annotations.get(provider.annotation_key):
        scope = scope_of(clique, provider)
        return DomainRequirement(provider.vendor, Mode.EXPLICIT, scope, named, by_claim=by_claim)
    group = by_group.get(clique.name, keys.MNNVL_GROUP_NONE)
    in_group = group != keys.MNNVL_GROUP_NONE
    if not provider.supports_auto or not (automatic or in_group):
        return None
    if not uses_accelerators(clique, provider, by_claim):
        return None
    group = group if in_group else ""
    return DomainRequirement(provider.vendor, Mode.AUTO, Scope.REPLICA, set_name, group, by_claim=by_claim)


def _with_options(
    requirement: DomainRequirement, clique: CliqueTemplate, of_set: Mapping[str, str], providers: Providers
) -> DomainRequirement:
    """The requirement with the options of its annotations; a default is the same as no annotation."""
    annotations = clique.annotations if requirement.mode is Mode.EXPLICIT else of_set
    chosen = tuple(
        (key, value)
        for key, (default, *_) in providers.of(requirement.vendor).options.items()
        if (value := annotations.get(key, default)) != default
    )
    return replace(requirement, options=chosen) if chosen else requirement


def _mentions_domains(workload: PodCliqueSet, providers: Providers) -> bool:
    """Whether any annotation is about domains: a cheap check that is all most sets need."""
    own = workload.metadata.annotations
    if keys.AUTO_MNNVL in own or keys.MNNVL_GROUP in own:
        return True
    template = workload.spec.template
    relevant = [keys.MNNVL_GROUP, *(provider.annotation_key for provider in providers)]
    parts: Iterator[Mapping[str, str]] = (
        part.annotations for parts in (template.cliques, template.pod_clique_scaling_groups) for part in parts
    )
    return any(key in annotations for annotations in parts if annotations for key in relevant)


def _is_index(text: str) -> bool:
    return text.isdecimal() and (text == "0" or not text.startswith("0"))


@lru_cache(maxsize=1024)
def _containers(pod_spec: bytes) -> tuple[Body, ...]:
    spec = msgspec.json.decode(pod_spec) if pod_spec else {}
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
