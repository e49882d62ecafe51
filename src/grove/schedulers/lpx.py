"""The backend of LPX, a scheduler with its own source of placement. It needs only its name on the pods."""

from __future__ import annotations

from collections.abc import Iterator

from grove.schedulers import podgang
from grove.schedulers.backend import Body, ForeignKind, GangRequest, PodAdditions, SchedulingSpec

NAME = "lpx-scheduler"


class Lpx:
    """The backend; its profile needs no configuration."""

    name = NAME
    gang_object_kind: ForeignKind | None = None
    minimum_first = False

    def gang_object_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def gang_object(self, request: GangRequest) -> Body | None:  # noqa: ARG002 - it has no gang object
        return None

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:  # noqa: ARG002 - the scheduler's name is enough
        return PodAdditions()

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - the same for every set
        yield from ()

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """All constraints."""
        for owner, _ in podgang.constraints(scheduling_spec.template):
            yield (
                f"topologyConstraint on {owner} is not supported: placement must be expressed through the "
                "LPX workload contract"
            )
