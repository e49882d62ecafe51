"""Which of several reasons in a domain is the cause: the one without which the pods would fit.

Nodes that are not ready or cordoned are expected to come back: they are the cause if the pods would fit with
them. Taints are meant: they are the cause only if the other nodes could not hold the pods even without any
use. What pods select is chosen with them: it is the cause only if no node matches.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.topology.placement.answers import Reason

_TEMPORARY = (Reason.NOT_READY, Reason.CORDONED)


class RejectedNodes(Struct):
    """Nodes that pods of a class may not use for one reason, and how many of these pods would fit there."""

    nodes: int = 0
    room: int = 0
    if_empty: int = 0


class ClassRoom(Struct, frozen=True):
    """The room in one domain for the pods of one class, of which too few fit."""

    need: int
    room: int
    if_empty: int
    """How many would fit into the domain without any use."""
    unreserved: int
    """How many would fit without the reservations of other gangs."""
    rejected: Mapping[tuple[Reason, str], RejectedNodes]
    eligible: int
    """How many nodes these pods may use."""


def cause(found: ClassRoom) -> Reason:
    """The reason without which the pods would fit, or would come closest to it."""
    selected = [(each, nodes) for (each, _), nodes in found.rejected.items() if each is not Reason.SELECTOR]
    if not selected and not found.eligible and found.rejected:
        return Reason.SELECTOR
    temporary = [(each, nodes) for each, nodes in selected if each in _TEMPORARY]
    if temporary and found.room + sum(nodes.room for _, nodes in temporary) >= found.need:
        return max(temporary, key=lambda each: each[1].room)[0]
    if found.if_empty >= found.need:
        return Reason.RESERVED if found.unreserved >= found.need else Reason.INSUFFICIENT
    hidden = sum(nodes.if_empty for _, nodes in selected)
    if selected and (not found.eligible or found.if_empty + hidden >= found.need):
        return max(selected, key=lambda each: (each[1].if_empty, each[1].nodes))[0]
    return Reason.TOO_LARGE
