"""Parsing of Kubernetes quantities."""

from __future__ import annotations

from fractions import Fraction

import pytest

from grove.api.formats.quantities import parse


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0", 0),
        (8, 8),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-1k", -1000),
        ("+2", 2),
        ("1.5Gi", 3 * 2**29),
        ("2e3", 2000),
        ("2E3", 2000),
        ("2E", 2 * 10**18),
        ("1E-2", Fraction(1, 100)),
        ("7n", Fraction(7, 10**9)),
        ("7u", Fraction(7, 10**6)),
        ("3T", 3 * 10**12),
        ("1Ei", 2**60),
    ],
)
def test_quantities_are_parsed_exactly(written, amount):
    assert parse(written) == amount


@pytest.mark.parametrize("written", ["", "m", "1 k", "1K", "1kk", "1e", "0x10", "1_000", "five", "٣", "nan"])
def test_invalid_quantity_raises(written):
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(written)


@pytest.mark.parametrize(
    "written",
    ["1e999999999", "1E-999999999", "1e65", "1" * 65, "0." + "1" * 70, 10**70, 10**4400, 1e308, "-1e99"],
    ids=lambda written: repr(written)[:20] if isinstance(written, str | float) else "long",
)
def test_huge_quantity_raises_before_it_is_computed(written):
    with pytest.raises(ValueError, match=r"is not a quantity|Exceeds the limit"):
        parse(written)
