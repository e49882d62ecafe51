"""What `grove plan` reports about one workload: data only, as it is printed in JSON."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    """Whether a workload fits."""

    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    UNKNOWN = "Unknown"
    REJECTED = "Rejected"


class Missing(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one domain lacks for one unit."""

    domain: tuple[str, ...]
    """From the widest level on; empty: the whole cluster."""
    level: str
    """The label of the domain's level; empty for the whole cluster."""
    unit: str
    reason: str
    text: str
    """The same for people."""
    nodes: int = 0
    resource: str = ""
    have: int = 0
    need: int = 0


class PlannedUnit(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A gang, group replica or clique, and where it goes."""

    name: str
    pods: int
    nodes: int
    """On how many nodes its pods are."""
    domain: tuple[str, ...] = ()
    """The domain of its required level; otherwise the narrowest one that holds all of it."""
    level: str = ""
    """The label of that domain's level; empty for the whole cluster."""
    required: str = ""
    """The label of the level that it must not leave; empty: none."""


class PlannedGang(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A gang, and where it goes or what it lacks."""

    name: str
    pods: int
    placed: bool
    base_gang: str = ""
    refused: bool = False
    """Whether the solver has found that there is no place."""
    gave_up: bool = False
    """Whether the solver was stopped at its limit of work: it is not known whether there is a place."""
    message: str = ""
    """Why it is not placed."""
    fallback: int = 0
    """The fallback of the topology constraint by which it is placed; 0: the constraint itself."""
    after: float = 0.0
    """After how many seconds that fallback is tried."""
    preempts: bool = False
    """Whether pods of a lower priority must leave first."""
    units: tuple[PlannedUnit, ...] = ()
    """The gang itself first, then its parts."""
    missing: tuple[Missing, ...] = ()
    depends: bool = False
    """Whether the answer is another one if earlier gangs get other nodes: the scheduler may put their pods on
    any node of their domain, and among equal nodes the history of the operator decides."""
    unplaced: int = 0
    """Pods beyond the minimum of their cliques that find no node."""


class ObjectCount(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The objects of one kind that are written."""

    kind: str
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class UpdatePlan(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An update of existing pods."""

    units: tuple[str, ...]
    """The pods, or group replicas, that are replaced, in order."""
    replicas: int
    lowest_available: int
    """How many replicas of the set are available at least, at any moment."""
    complete: bool = True
    """Whether the update was followed to its end."""


class AdmissionVerdict(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether the object is stored."""

    allowed: bool
    by: str
    """Whose verdict it is: the API server's (dry run), or that of the rules of this grove."""
    message: str = ""
    warnings: tuple[str, ...] = ()
    known: bool = True
    """False: there is no verdict, and `message` says why."""


class WorkloadPlan(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What would happen with one object of the input."""

    kind: str
    namespace: str
    name: str
    action: str
    """`create`, `update`, `unchanged` or `rejected`."""
    verdict: Verdict
    admission: AdmissionVerdict
    gangs: tuple[PlannedGang, ...] = ()
    objects: tuple[ObjectCount, ...] = ()
    update: UpdatePlan | None = None
    fabric_domains: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """What the operator would report in `status.lastErrors`."""
    notes: tuple[str, ...] = ()
    max_replicas: int | None = None
    """How many replicas fit now, if that was asked."""


class PlanReport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result for the whole input."""

    source: str
    verdict: Verdict
    plans: tuple[WorkloadPlan, ...]
    unread: tuple[str, ...] = ()
    """What could not be read of the cluster."""


_WORST = (Verdict.FITS, Verdict.UNKNOWN, Verdict.DOES_NOT_FIT, Verdict.REJECTED)


def worst(verdicts: tuple[Verdict, ...]) -> Verdict:
    """The verdict on several workloads together."""
    return max(verdicts, key=_WORST.index, default=Verdict.FITS)
