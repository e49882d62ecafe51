"""Which vendors' domains are managed: those that the configuration lists, ours and those of others.

Somebody else's is a factory under the entry point group `grove.fabric_domains`, named like its vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from grove.api.configuration.loading import ConfigurationError
from grove.fabrics import nvidia
from grove.fabrics.provider import FabricDomainProvider

ENTRY_POINTS = "grove.fabric_domains"
Factory = Callable[[], FabricDomainProvider]


class Providers(Struct, frozen=True):
    """The vendors in use, in the order of their names."""

    by_vendor: Mapping[str, FabricDomainProvider] = {}

    def __iter__(self) -> Iterator[FabricDomainProvider]:
        return iter(self.by_vendor.values())

    def __len__(self) -> int:
        return len(self.by_vendor)

    def of(self, vendor: str) -> FabricDomainProvider:
        """The provider of a vendor that is in use."""
        return self.by_vendor[vendor]

    @property
    def auto(self) -> FabricDomainProvider | None:
        """The one that serves sets which ask for a domain for each replica."""
        return next((provider for provider in self if provider.supports_auto), None)


def providers(
    listed: Iterable[str], others: Mapping[str, Factory] | None = None, *, auto: bool = False
) -> Providers:
    """The providers that a configuration lists. Raises ConfigurationError, about all that is wrong at once.
    `auto`: one of them must serve the automatic mode."""
    factories = {**(others or {}), **_OURS}
    made: dict[str, FabricDomainProvider] = {}
    problems: list[str] = []
    for index, vendor in enumerate(listed):
        if vendor in made:
            problems.append(f"fabrics[{index}]: {vendor} is listed twice")
        elif (factory := factories.get(vendor)) is None:
            problems.append(f"fabrics[{index}]: no fabric vendor {vendor}: {', '.join(factories)}")
        else:
            try:
                made[vendor] = _checked(vendor, factory())
            except Exception as error:
                problems.append(f"fabrics[{index}]: {vendor} cannot be used: {type(error).__name__}: {error}")
    problems += _clashes(made)
    if auto and not problems and not any(provider.supports_auto for provider in made.values()):
        problems.append(
            "fabrics: network.autoMNNVLEnabled needs a vendor that serves it: add nvidia, or disable it"
        )
    if problems:
        raise ConfigurationError(tuple(problems))
    return Providers(dict(sorted(made.items())))


def _checked(vendor: str, provider: FabricDomainProvider) -> FabricDomainProvider:
    if not isinstance(provider, FabricDomainProvider):
        raise TypeError("it is no FabricDomainProvider")
    if provider.vendor != vendor:
        raise ValueError(f"it calls itself {provider.vendor}")
    return provider


def _clashes(made: Mapping[str, FabricDomainProvider]) -> Iterator[str]:
    """What two vendors both want for themselves."""
    owners: dict[tuple[str, str], str] = {}
    for vendor, provider in made.items():
        wanted = [
            ("annotation", provider.annotation_key),
            ("annotation", provider.scope_key),
            ("claim", provider.claim_name),
        ]
        if provider.supports_auto:
            wanted.append(("mode", "automatic"))
        for what in wanted:
            if (other := owners.setdefault(what, vendor)) != vendor:
                yield f"fabrics: {other} and {vendor} both want the {what[0]} {what[1]}: list one of them"


_OURS: Mapping[str, Factory] = {nvidia.VENDOR: nvidia.Nvidia}
