"""The condition `TopologyConstraintsEnforced`: what enforces topology constraints, or why nothing does.

Enforced means that required levels are kept and preferred ones are tried, also while pods wait for nodes. A
gang or set without constraints has no such condition.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api.conditions import ConditionType
from grove.api.conditions import EnforcementReason as Reason
from grove.api.meta import Condition

_BY_PLACEMENT = "The operator chooses nodes by the constraints"


class EnforcementFacts(Struct, frozen=True):
    """What decides about one gang with constraints. An empty text means that this is no obstacle."""

    scheduler: str
    """The name of its scheduler."""
    placed: bool = False
    """Whether the operator chooses its nodes."""
    levels: str = ""
    """Why its constraints cannot be translated to node labels."""
    unconfigured: str = ""
    """That the configuration does not list its scheduler."""
    dropped: str = ""
    """That the API server stored its scheduler's object without constraints."""
    failed: str = ""
    """Why its scheduler's object cannot be written."""
    unsupported: str = ""
    """Which constraints its scheduler does not support."""
    unmet: str = ""
    """Which required domains its pods are not in."""


def enforcement(facts: EnforcementFacts) -> Condition:
    """The condition of a gang, without a transition time."""
    obstacles = (
        (facts.levels, Reason.LEVELS_UNAVAILABLE),
        (facts.unconfigured, Reason.NOT_CONFIGURED),
        (facts.dropped, Reason.DROPPED),
        (facts.failed, Reason.OBJECT_FAILED),
        (facts.unsupported, Reason.UNSUPPORTED),
        (facts.unmet, Reason.NOT_MET),
    )
    for message, reason in obstacles:
        if message:
            return _condition("False", reason, message)
    if facts.placed:
        return _condition("True", Reason.BY_PLACEMENT, _BY_PLACEMENT)
    return _condition("True", Reason.BY_SCHEDULER, f"{facts.scheduler} is given the constraints")


def combined(conditions: Iterable[Condition]) -> Condition | None:
    """The condition of a whole with these parts: that of the first part that is not enforced, else of the
    first; None if no part has constraints."""
    known = list(conditions)
    return next((each for each in known if each.status == "False"), known[0] if known else None)


def _condition(status: str, reason: Reason, message: str) -> Condition:
    return Condition(type=ConditionType.CONSTRAINTS_ENFORCED, status=status, reason=reason, message=message)
