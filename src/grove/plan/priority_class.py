"""The PriorityClass of a set that does not exist: reported on the set, while pods are created without it."""

from __future__ import annotations

from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.timestamps import rfc3339


def missing_priority_class(workload: PodCliqueSet, now: float) -> tuple[LastError]:
    """The error of a set whose PriorityClass does not exist."""
    name, code = workload.spec.template.priority_class_name, ErrorCode.GET_PRIORITY_CLASS
    message = (
        f"spec.template.priorityClassName: PriorityClass {name} does not exist, and pods are created without "
        "it: create it, or name another one"
    )
    return (LastError(code, describe(Operation.SYNC, code, message), rfc3339(now)),)
