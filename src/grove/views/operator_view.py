"""The view of the operator: whether one leads, from the Leases of leader election. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from grove.kube.leader.lease import Lease, is_held
from grove.plan.timestamps import timestamp
from grove.views.age import age_text
from grove.views.claim_view import View
from grove.views.set_view import seconds_since


class OperatorView(View, frozen=True):
    """The Lease of the operator. `alive`: its holder has renewed it in time."""

    alive: bool
    lease: str = ""
    holder: str = ""
    renewed: str | None = None
    renewed_seconds_ago: int | None = None


def operator_view(leases: Iterable[Lease], now: float) -> OperatorView:
    """The Lease that is held, or else the one that was renewed last."""
    at = datetime.fromtimestamp(now, UTC)
    ranked = sorted(leases, key=lambda lease: (is_held(lease, at), timestamp(lease.spec.renew_time)))
    if not ranked:
        return OperatorView(alive=False)
    lease = ranked[-1]
    renewed = lease.spec.renew_time
    return OperatorView(
        alive=is_held(lease, at),
        lease=f"{lease.metadata.namespace}/{lease.metadata.name}",
        holder=lease.spec.holder_identity or "",
        renewed=renewed,
        renewed_seconds_ago=seconds_since(renewed, now),
    )


def operator_line(operator: OperatorView, lease_name: str) -> str:
    """One line on the operator."""
    if not operator.lease:
        return (
            f"operator: no Lease {lease_name}: none is installed, or it runs without leader election "
            "or with a Lease of another name (--lease)"
        )
    since = f"{age_text(operator.renewed_seconds_ago)} ago"
    if operator.alive:
        return f"operator: {operator.holder} leads, and renewed Lease {operator.lease} {since}"
    ended = f"not renewed by {operator.holder} since {since}" if operator.holder else f"released {since}"
    return f"operator: none leads, nothing is reconciled: Lease {operator.lease} was {ended}"
