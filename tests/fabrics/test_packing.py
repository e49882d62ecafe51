"""Whether a set has its domains packed."""

from __future__ import annotations

import pytest

from grove.api.configuration.types import DomainPacking
from grove.fabrics.packing import packing_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "preferred"), ("off", "off"), ("required", "required"), ("always", "preferred")],
)
def test_annotation_goes_before_the_setting(value, expected):
    annotations = {} if value is None else {"grove.io/pack-domains": value}
    assert packing_of(annotations, DomainPacking.PREFERRED) == expected
