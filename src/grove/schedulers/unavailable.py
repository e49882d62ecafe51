"""A backend of somebody else that could not be made: its users are held and told why, nobody else is."""

from __future__ import annotations

from collections.abc import Iterator

from grove.schedulers.backend import (
    Body,
    ForeignKind,
    GangRequest,
    PodAdditions,
    SchedulingSpec,
    UnsupportedGang,
)


class UnavailableBackend:
    """Stands in for a backend that raised when it was made."""

    gang_object_kind: ForeignKind | None = None
    minimum_first = False

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, f"scheduler backend {name} cannot be used: {why}"

    def gang_object_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def gang_object(self, request: GangRequest) -> Body | None:  # noqa: ARG002 - whatever it is
        raise UnsupportedGang(self._why)

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:  # noqa: ARG002 - there will be no pods
        return PodAdditions()

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - whatever it is
        yield self._why

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - nothing of it is taken
        yield from ()
