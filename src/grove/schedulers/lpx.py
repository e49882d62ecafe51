"""The backend of LPX, a scheduler with its own source of placement. It needs only its name on the pods."""

from __future__ import annotations

from collections.abc import Iterator

from grove.schedulers import podgang
from grove.schedulers.backend import SchedulerBackend, SchedulingSpec

NAME = "lpx-scheduler"


class Lpx(SchedulerBackend):
    """The backend; its profile needs no configuration."""

    name = NAME

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """All constraints."""
        for owner, _ in podgang.constraints(scheduling_spec.template):
            yield (
                f"topologyConstraint on {owner} is not supported: placement must be expressed through the "
                "LPX workload contract"
            )
