"""Renews nominations that the scheduler may have lost: before Kubernetes 1.37 it forgets those of gated pods
when it restarts, until the pods change.

What changes is an annotation of the pods. It names the scheduler process, so that after a restart the pods of
all nominated gangs are written once. Where that process is not known, it has a time, and is written again and
again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from grove import timing
from grove.api.formats import timestamps
from grove.plan.placement.state import GangState


def renewed(state: GangState, scheduler: str | None, now: float) -> GangState:
    """The state of a gang with nominations that the scheduler process knows, if it has nominations."""
    decision = state.decision
    if scheduler is None or decision is None or not state.nominations:
        return state
    if scheduler:
        state = replace(state, renewal=scheduler, renewed_at=now) if state.renewal != scheduler else state
    elif now >= (next_renewal(state) or now):
        state = replace(state, renewal=timestamps.render(datetime.fromtimestamp(now, UTC)), renewed_at=now)
    if decision.renewal == state.renewal:
        return state
    return replace(state, decision=replace(decision, renewal=state.renewal))


def next_renewal(state: GangState) -> float | None:
    """When the nominations of a gang are renewed if the scheduler process is not known; None: at once."""
    return state.renewed_at + timing.NOMINATION_RENEWAL if state.renewed_at else None
