"""The fabric providers in use: those that the configuration lists, built in or from other packages.

Another package provides one as a factory in the entry point group `grove.fabric_domains`, under the name of
its vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import DomainPacking
from grove.fabrics import nvidia
from grove.fabrics.provider import FabricDomainProvider

ENTRY_POINTS = "grove.fabric_domains"
Factory = Callable[[], FabricDomainProvider]


class Providers(Struct, frozen=True):
    """The providers in use, sorted by vendor."""

    by_vendor: Mapping[str, FabricDomainProvider] = {}
    packing: DomainPacking = DomainPacking.PREFERRED
    """Whether the pods of a domain are placed in one partition, for sets that do not say it."""

    def __iter__(self) -> Iterator[FabricDomainProvider]:
        return iter(self.by_vendor.values())

    def __len__(self) -> int:
        return len(self.by_vendor)

    def of(self, vendor: str) -> FabricDomainProvider:
        """The provider of a vendor that is in use."""
        return self.by_vendor[vendor]

    @property
    def auto(self) -> FabricDomainProvider | None:
        """The provider of automatic domains, one per replica."""
        return next((provider for provider in self if provider.supports_auto), None)


def providers(
    listed: Iterable[str],
    others: Mapping[str, Factory] | None = None,
    *,
    auto: bool = False,
    packing: DomainPacking = DomainPacking.PREFERRED,
) -> Providers:
    """The providers that a configuration lists. Raises ConfigurationError with all problems at once. `auto`:
    one of them must support automatic domains. `packing`: for sets that do not say it."""
    factories = {**(others or {}), **BUILT_IN}
    created: dict[str, FabricDomainProvider] = {}
    problems: list[str] = []
    for index, vendor in enumerate(listed):
        if vendor in created:
            problems.append(f"fabrics[{index}]: {vendor} is listed twice")
        elif (factory := factories.get(vendor)) is None:
            problems.append(f"fabrics[{index}]: no fabric vendor {vendor}: use one of {', '.join(factories)}")
        else:
            try:
                created[vendor] = _checked(vendor, factory())
            except Exception as error:
                problems.append(f"fabrics[{index}]: {vendor} cannot be used: {type(error).__name__}: {error}")
    problems += _conflicts(created)
    if auto and not problems and not any(provider.supports_auto for provider in created.values()):
        problems.append(
            "fabrics: network.autoMNNVLEnabled needs a vendor that supports it: add nvidia, or disable it"
        )
    if problems:
        raise ConfigurationError(tuple(problems))
    return Providers(dict(sorted(created.items())), packing)


def _checked(vendor: str, provider: FabricDomainProvider) -> FabricDomainProvider:
    if not isinstance(provider, FabricDomainProvider):
        raise TypeError("it is not a FabricDomainProvider")
    if provider.vendor != vendor:
        raise ValueError(f"its vendor is {provider.vendor}")
    return provider


def _conflicts(created: Mapping[str, FabricDomainProvider]) -> Iterator[str]:
    """Annotations, claim names and modes that two vendors both use."""
    owners: dict[tuple[str, str], str] = {}
    for vendor, provider in created.items():
        wanted = [
            ("annotation", provider.annotation_key),
            ("annotation", provider.scope_key),
            ("claim", provider.claim_name),
        ]
        if provider.supports_auto:
            wanted.append(("mode", "automatic"))
        for what in wanted:
            if (other := owners.setdefault(what, vendor)) != vendor:
                yield f"fabrics: {other} and {vendor} both use the {what[0]} {what[1]}: list only one of them"


BUILT_IN: Mapping[str, Factory] = {nvidia.VENDOR: nvidia.Nvidia}
