"""A reason for which pods wait, with its evidence. Data only."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.reasons.codes import ReasonCode, rank
from grove.reasons.texts import REMEDIES, SUMMARIES


class ObjectName(Struct, frozen=True, gc=False):
    """The object that a reason is about, in the namespace of the workload."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Evidence(Struct, frozen=True, gc=False):
    """One finding in one place, as counts: nodes and amounts. It names nodes and domains of nodes, and no
    object of another namespace."""

    code: ReasonCode
    where: str
    """A domain such as `rack r3`, or `the cluster`."""
    unit: str = ""
    """The part of the gang that does not fit."""
    subject: str = ""
    """The resource, taint or label that it is about."""
    nodes: int = 0
    have: int = 0
    """Pods, or amount of the resource, that there is room for."""
    need: int = 0
    text: str = ""
    """The finding in a few words, without the place."""
    of_nodes: int = 0
    """How many nodes the place has; 0 if they do not matter."""


class WaitReason(Struct, frozen=True, gc=False):
    """Why pods wait."""

    code: ReasonCode
    message: str = ""
    """What was found, in one line without the remedy; empty: what the code says."""
    about: ObjectName | None = None
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    """What a user can do; empty: what helps against the code in general."""
    changing: bool = False
    """Whether the message has numbers that change while the reason lasts."""
    since: float = 0.0
    """When it began, if that is known: what `grove explain` sorts equal codes by."""

    @property
    def summary(self) -> str:
        """What the code says, in a few words that do not change while the reason lasts."""
        return SUMMARIES[self.code]

    @property
    def advice(self) -> str:
        """What a user can do."""
        return self.remedy or REMEDIES[self.code]

    @property
    def line(self) -> str:
        """Everything in one line: object, finding and remedy."""
        found = self.message or self.summary
        return (
            f"{self.about}: {found}; {self.advice}" if self.about is not None else f"{found}; {self.advice}"
        )

    @property
    def stable_line(self) -> str:
        """The same without numbers that change while the reason lasts."""
        about = f"{self.about}: " if self.about is not None else ""
        return f"{about}{self.summary}; {self.advice}"


def ranked(reasons: Iterable[WaitReason]) -> list[WaitReason]:
    """The reasons without duplicates, what keeps everything else from happening first."""
    unique = dict.fromkeys(reasons)
    return sorted(unique, key=lambda each: (rank(each.code), each.since))


def first(reasons: Iterable[WaitReason]) -> WaitReason | None:
    """The reason that is shown if there is room for one; of equal codes the one that came first."""
    return min(reasons, key=lambda each: rank(each.code), default=None)
