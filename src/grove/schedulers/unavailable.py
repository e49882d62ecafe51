"""The substitute for a backend of another package that could not be created: the sets that use it wait, with
the reason in their errors. Other sets are not affected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grove.schedulers.backend import Body, GangRequest, SchedulerBackend, SchedulingSpec, UnsupportedGang


class UnavailableBackend(SchedulerBackend):
    """Rejects every set and gang with the error that the backend's factory raised."""

    def __init__(self, name: str, why: str) -> None:
        self._name, self._why = name, f"scheduler backend {name} cannot be used: {why}"

    @property
    def name(self) -> str:
        return self._name

    def gang_object(self, request: GangRequest) -> Body | None:  # noqa: ARG002 - the same for every request
        raise UnsupportedGang(self._why)

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:  # noqa: ARG002 - the same for every set
        yield self._why

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterable[str]:  # noqa: ARG002 - the set is rejected anyway
        return ()
