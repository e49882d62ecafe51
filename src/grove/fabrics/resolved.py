"""The fabric domains that a set requires, and the state of each. Data only; `grove.plan.fabric.resolution`
computes it, once for all plans."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from grove.api.types.common import LastError
from grove.fabrics.membership import DomainMembership
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.fabrics.requirements import DomainRequirement


class DomainState(StrEnum):
    """The state of a domain for a set that requires it."""

    USABLE = "usable"
    MISSING = "missing"
    NOT_OWNED_YET = "not owned yet"
    TERMINATING = "terminating"
    CONFLICT = "conflict"
    TEMPLATE_CONFLICT = "template conflict"
    NOT_SERVED = "not served"


class DomainReport(Struct, frozen=True, gc=False):
    """What the latest pass over a domain reports to the sets that require it."""

    busy: str = ""
    """The message about the holders of the channels that its pods wait for."""
    failure: LastError | None = None
    """Why it could not be created or changed."""


class ResolvedDomain(Struct, frozen=True):
    """A domain that a set requires."""

    provider: FabricDomainProvider
    name: str
    membership: DomainMembership
    state: DomainState
    template: str
    """The ResourceClaimTemplate through which pods join it."""
    found: Domain | None = None
    channels: int | None = None
    """How many pods of the whole cluster can be in domains of the vendor at once; None if not known."""
    nodes: frozenset[str] = frozenset()
    """The nodes that its pods are on: each of them should be in the domain. For the status of sets only."""
    report: DomainReport = DomainReport()

    @property
    def requirement(self) -> DomainRequirement:
        return self.membership.requirement


ReplicaDomains = Mapping[str, Mapping[int, tuple[ResolvedDomain, ...]]]
"""The domains that the pods of a replica join: by the name of their clique in the set, then by group replica,
which is 0 for a clique that is in no group. Cliques without domains are left out."""
