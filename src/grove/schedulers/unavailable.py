"""The substitute for a backend of another package that could not be created: the sets that use it wait, with
the reason in their errors. Other sets are not affected."""

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
    """Rejects every set and gang with the error that the backend's factory raised."""

    gang_object_kind: ForeignKind | None = None
    minimum_first = False

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, f"scheduler backend {name} cannot be used: {why}"

    def gang_object_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def gang_object(self, request: GangRequest) -> Body | None:  # noqa: ARG002 - the same for every request
        raise UnsupportedGang(self._why)

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:  # noqa: ARG002 - there will be no pods
        return PodAdditions()

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - the same for every request
        yield self._why

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - the set is rejected anyway
        yield from ()
