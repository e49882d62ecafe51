"""Which vendors a configuration brings, ours and others', and what is wrong with it."""

from __future__ import annotations

import pytest

from grove.api.configuration.loading import ConfigurationError
from grove.fabrics.registry import providers
from tests.fabrics.example_vendor import Example


def problems(*listed, **options):
    with pytest.raises(ConfigurationError) as wrong:
        providers(listed, **options)
    return wrong.value.problems


def test_those_that_are_listed_in_the_order_of_their_names():
    assert [one.vendor for one in providers(())] == []
    found = providers(("nvidia", "example"), {"example": Example})
    assert [one.vendor for one in found] == ["example", "nvidia"]
    assert found.auto is found.of("nvidia")
    assert providers(("example",), {"example": Example}).auto is None


def test_all_mistakes_are_told_at_once():
    unknown, twice = problems("nobody", "nvidia", "nvidia")
    assert unknown == "fabrics[0]: no fabric vendor nobody: use one of nvidia"
    assert twice == "fabrics[2]: nvidia is listed twice"


def test_two_vendors_may_not_want_the_same():
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


def test_what_cannot_be_made_or_is_something_else_is_told():
    def broken():
        raise RuntimeError("no licence")

    others = {"broken": broken, "thing": object, "alias": Example}
    assert problems("broken", "thing", "alias", others=others) == (
        "fabrics[0]: broken cannot be used: RuntimeError: no licence",
        "fabrics[1]: thing cannot be used: TypeError: it is not a FabricDomainProvider",
        "fabrics[2]: alias cannot be used: ValueError: its vendor is example",
    )


def test_the_automatic_mode_needs_a_vendor_that_serves_it():
    (wrong,) = problems(auto=True)
    assert (
        wrong
        == "fabrics: network.autoMNNVLEnabled needs a vendor that supports it: add nvidia, or disable it"
    )
    assert providers(("nvidia",), auto=True).auto is not None
