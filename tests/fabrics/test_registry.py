"""The fabric providers that a configuration lists, and problems of the configuration."""

from __future__ import annotations

import pytest

from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import DomainPacking
from grove.fabrics.registry import providers
from tests.fabrics.example_vendor import Example


def problems(*listed, **options):
    with pytest.raises(ConfigurationError) as wrong:
        providers(listed, **options)
    return wrong.value.problems


def test_listed_providers_are_sorted_by_vendor():
    assert [one.vendor for one in providers(())] == []
    found = providers(("nvidia", "example"), {"example": Example})
    assert [one.vendor for one in found] == ["example", "nvidia"]
    assert found.auto is found.of("nvidia")
    assert providers(("example",), {"example": Example}).auto is None


def test_all_problems_are_reported_at_once():
    unknown, twice = problems("absent", "nvidia", "nvidia")
    assert unknown == "fabrics[0]: no fabric vendor absent: use one of nvidia"
    assert twice == "fabrics[2]: nvidia is listed twice"


def test_conflicting_providers_are_reported():
    class Greedy(Example):
        vendor = "greedy"
        annotation_key = "nvidia.com/computedomain"
        claim_name = "mnnvl-claim"
        supports_auto = True

    assert problems("nvidia", "greedy", others={"greedy": Greedy}) == (
        "fabrics: nvidia and greedy both use the annotation nvidia.com/computedomain: list only one of them",
        "fabrics: nvidia and greedy both use the claim mnnvl-claim: list only one of them",
        "fabrics: nvidia and greedy both use the mode automatic: list only one of them",
    )


def test_unusable_provider_is_reported():
    def broken():
        raise RuntimeError("no licence")

    others = {"broken": broken, "thing": object, "alias": Example}
    assert problems("broken", "thing", "alias", others=others) == (
        "fabrics[0]: broken cannot be used: RuntimeError: no licence",
        "fabrics[1]: thing cannot be used: TypeError: it is not a FabricDomainProvider",
        "fabrics[2]: alias cannot be used: ValueError: its vendor is example",
    )


def test_auto_mode_needs_a_supporting_vendor():
    (wrong,) = problems(auto=True)
    assert (
        wrong
        == "fabrics: network.autoMNNVLEnabled needs a vendor that supports it: add nvidia, or disable it"
    )
    assert providers(("nvidia",), auto=True).auto is not None


def test_default_packing_is_that_of_the_configuration():
    assert providers(("nvidia",)).packing is DomainPacking.PREFERRED
    assert providers(("nvidia",), packing=DomainPacking.REQUIRED).packing is DomainPacking.REQUIRED
