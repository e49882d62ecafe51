"""Whether the pods of a fabric domain are placed in one partition of the fabric, between whose nodes it has
links."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.configuration.types import DomainPacking
from grove.api.naming import annotations as keys


def packing_of(annotations: Mapping[str, str], default: DomainPacking) -> DomainPacking:
    """What a set with these annotations asks for; a value that admission would refuse counts as none."""
    value = annotations.get(keys.PACK_DOMAINS)
    return DomainPacking(value) if value in set(DomainPacking) else default
