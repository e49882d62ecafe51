"""LPX: a scheduler that takes its placement from elsewhere. It only wants its name on the pods."""

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

    def gang_object(self, request: GangRequest) -> Body | None:  # noqa: ARG002 - it is told nothing
        return None

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:  # noqa: ARG002 - the scheduler's name is enough
        return PodAdditions()

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - whatever it is
        yield from ()

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Any constraint of ours."""
        for whose, _ in podgang.constraints(scheduling_spec.template):
            yield (
                f"topologyConstraint on {whose} is not supported: placement must be expressed through the "
                "LPX workload contract"
            )
