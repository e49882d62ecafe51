"""The fabric domains that a set requires, and the state of each. Data only; `grove.plan.fabric.resolution`
computes it, once for all plans."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from grove.api.configuration.types import DomainPacking
from grove.api.types.common import LastError
from grove.fabrics.domain_pods import NO_PODS, DomainPods
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
    TEMPLATE_MISSING = "template missing"
    """The driver has not created its claim template yet."""
    NOT_SERVED = "not served"
    OUTDATED = "other version served"
    """The CRD exists, and serves only versions that the operator does not use."""
    NO_GROUP = "no group"
    """It is for replicas of a scaling group, and the clique is in none."""


class DomainReport(Struct, frozen=True, gc=False):
    """What the latest pass over a domain reports to the sets that require it."""

    busy: str = ""
    """The message about the holders of the channels that its pods wait for."""
    problems: tuple[tuple[str, str], ...] = ()
    """Why its pods cannot use it, as pairs of reason and message: sets and replicas look again when they
    change, also if that follows from the time alone."""
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
    pods: DomainPods = NO_PODS
    report: DomainReport = DomainReport()
    packing: DomainPacking = DomainPacking.OFF
    """Whether pods of the set go to one partition of the fabric; off for a vendor without partitions."""

    @property
    def requirement(self) -> DomainRequirement:
        return self.membership.requirement


ReplicaDomains = Mapping[str, Mapping[int, tuple[ResolvedDomain, ...]]]
"""The domains that the pods of a replica join: by the name of their clique in the set, then by group replica,
which is 0 for a clique that is in no group. Cliques without domains are left out."""
