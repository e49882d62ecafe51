"""Whether an operator leads, by its Lease."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import KindState
from grove.kube.client.client import Client
from grove.kube.client.resource import LEASES
from grove.kube.errors import Forbidden
from grove.kube.leader.lease import Lease, is_held
from grove.plan.timestamps import timestamp
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason

Leases = tuple[Lease, ...] | None
"""Those of operators; None if they are not known."""


async def read_leases(client: Client, name: str) -> Leases:
    """The Leases of operators, in all namespaces; None if this user may not list them, or one of them cannot
    be decoded."""
    try:
        found = await client.list(LEASES, as_type=Lease, fields=f"metadata.name={name}")
    except Forbidden:
        return None
    return None if found.undecodable else tuple(found.items)


def known_leases(kind: KindState, found: Iterable[Lease]) -> Leases:
    """The Leases that were read; the operator may be in a namespace that was not."""
    leases = tuple(found)
    return leases if kind.listed and (leases or not kind.namespace) else None


def operator_reason(leases: Leases, workload: PodCliqueSet | None, now: float) -> WaitReason | None:
    """That no operator leads: its Lease is not held, or it has none and the set was never reconciled."""
    at = datetime.fromtimestamp(now, UTC)
    if leases is None or any(is_held(lease, at) for lease in leases):
        return None
    if not leases:
        if _was_reconciled(workload):  # by an operator with another Lease, or without leader election
            return None
        return WaitReason(ReasonCode.NO_OPERATOR_LEADING, "there is no Lease of an operator")
    last = max(leases, key=lambda each: timestamp(each.spec.renew_time))
    name = f"{last.metadata.namespace}/{last.metadata.name}"
    return WaitReason(
        ReasonCode.NO_OPERATOR_LEADING,
        f"Lease {name} was not renewed since {last.spec.renew_time}",
        since=timestamp(last.spec.renew_time),
    )


def _was_reconciled(workload: PodCliqueSet | None) -> bool:
    if workload is None:
        return False
    status = workload.status
    return bool(status.observed_generation or status.conditions or status.last_errors)
