"""What the solver answers: placed, does not fit, or gave up at the work limit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from grove.topology.placement.model import Domain


class Reason(StrEnum):
    """Why nodes or a domain cannot be used."""

    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    TAINT = "Taint"
    SELECTOR = "Selector"
    INSUFFICIENT = "Insufficient"
    NO_SUCH_RESOURCE = "NoSuchResource"
    RESERVED = "Reserved"
    TOO_LARGE = "TooLarge"
    FRAGMENTED = "Fragmented"
    NO_DOMAIN = "NoDomain"
    EXCLUDED = "Excluded"
    CONTRADICTION = "Contradiction"
    BOUND_ELSEWHERE = "BoundElsewhere"
    TOO_MANY_PARTITIONS = "TooManyPartitions"


class Shortage(Struct, frozen=True):
    """One reason in one domain."""

    reason: Reason
    nodes: int = 0
    """On how many nodes of the domain."""
    resource: str = ""
    """The resource, taint, label key or back-off that the reason is about."""
    have: int = 0
    """Pods, or amount of the resource, that there is room for; of nodes that pods may not use, the pods that
    they would have room for."""
    need: int = 0


class DomainReport(Struct, frozen=True):
    """Why a unit does not fit into a domain."""

    domain: Domain
    unit: str
    shortages: tuple[Shortage, ...]
    cause: Reason
    """Of these, the one without which the unit would fit, or would come closest to it."""
    nodes: int = 0
    """How many nodes the domain has; 0 if they do not matter."""
    partition: str = ""
    """The partition that the report is about, in words for users; empty if there is none."""


def one_shortage(domain: Domain, unit: str, shortage: Shortage) -> DomainReport:
    """The report of a unit with a single reason."""
    return DomainReport(domain, unit, (shortage,), shortage.reason)


class Objective(Struct, frozen=True, order=True):
    """The quality of a placement; the smallest is the best."""

    unmet_preference: float
    """1 - score."""
    broken: tuple[int, ...]
    """Whole domains that are broken: one count for each level, from broad to narrow."""


class Placed(Struct, frozen=True):
    nodes: Mapping[str, str]
    """The node of each pod: of the minimum, and of extra pods for which there is room."""
    domains: Mapping[str, Domain]
    """The domain of each unit with a required level; of other units the narrowest that holds all of it."""
    score: float
    """Mean over the units with a preferred level: the share of their minimum in one preferred domain."""
    preferred_met: bool
    broken: tuple[int, ...]
    optimal: bool = True
    """Whether the search was completed: no placement has a better objective."""
    room_for_further: bool = True
    partitions: tuple[str, ...] = ()
    """By partition of the problem, the value that its pods share; empty if they do not, or if none of them is
    to be placed."""

    @property
    def objective(self) -> Objective:
        return Objective(round(1.0 - self.score, 9), self.broken)


class NoFit(Struct, frozen=True):
    reports: tuple[DomainReport, ...]
    """The domains that come closest, up to a limit."""
    domains: int
    """How many domains were considered."""
    fits_if_empty: bool | None
    """Whether the gang fits into the cluster without any use; None if that is not known."""


class GaveUp(Struct, frozen=True):
    """The work limit was reached: it is not known whether the gang fits."""

    work: int


Answer = Placed | NoFit | GaveUp
