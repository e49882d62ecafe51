"""Kueue's Workload, with the fields that the operator reads: what Kueue admits as a unit, one for each pod of
a Deployment and for each replica of a LeaderWorkerSet. Kueue creates it, owned by that pod, or by the
LeaderWorkerSet and the pods of the replica."""

from __future__ import annotations

from grove.api.meta import Condition, ObjectMeta
from grove.api.wire import Wire

_NOT_ADMITTED_BY = ("QuotaReserved", "Admitted")
_NOT_CONSIDERED = "PendingEvaluation"
"""The reason of Kueue for each new Workload, until it has considered it."""
_READY = "Ready"


class KueueWorkloadSpec(Wire, frozen=True):
    """The LocalQueue that it waits in."""

    queue_name: str = ""


class KueueAdmissionCheck(Wire, frozen=True):
    """The state of one of the checks that admission waits for."""

    name: str = ""
    state: str = ""
    message: str = ""


class KueueWorkloadStatus(Wire, frozen=True):
    """Whether it is admitted."""

    conditions: tuple[Condition, ...] = ()
    admission_checks: tuple[KueueAdmissionCheck, ...] = ()


class KueueWorkload(Wire, frozen=True):
    """A Workload of Kueue."""

    metadata: ObjectMeta
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()

    @property
    def refusal(self) -> str:
        """Why it is not admitted, in the words of Kueue; empty if it is, or if Kueue does not say."""
        by_type = {each.type: each for each in self.status.conditions}
        if any(by_type[each].status == "True" for each in ("Admitted", "Finished") if each in by_type):
            return ""
        for each in _NOT_ADMITTED_BY:
            found = by_type.get(each)
            if found is not None and found.status == "False" and found.message:
                return f"{found.reason}: {found.message}" if found.reason != _NOT_CONSIDERED else ""
        waiting = (each for each in self.status.admission_checks if each.state != _READY)
        check = next(waiting, None)
        return f"admission check {check.name} is {check.state}: {check.message}" if check is not None else ""
