"""Which scheduler a set's pods ask for, and what that scheduler was told."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

from grove.api.config import Scheduler
from grove.api.sets import PodCliqueSet
from grove.operator.caches import BY_REPLICA, Caches
from grove.operator.keys import ReplicaKey
from grove.plan.compose import named_scheduler
from grove.schedulers.backend import Backend, Foreign
from grove.schedulers.registry import ENTRY_POINTS, Backends, Factory, backends


def registered(scheduler: Scheduler) -> Backends:
    """The backends that a configuration lists, those of others found by entry point. Raises
    ConfigurationError."""
    listed = {profile.name for profile in scheduler.profiles}
    others: dict[str, Factory] = {
        point.name: lambda config, point=point: point.load()(config)  # type: ignore[misc]
        for point in entry_points(group=ENTRY_POINTS)
        if point.name in listed
    }
    return backends(scheduler, others)


class Schedulers:
    """The backends in use, and what the caches know of their objects."""

    def __init__(self, caches: Caches, in_use: Backends | None) -> None:
        self._caches, self._in_use = caches, in_use

    def of(self, workload: PodCliqueSet) -> Backend | None:
        """The backend of a set; None: its scheduler is told nothing."""
        return self._in_use.of(named_scheduler(workload)) if self._in_use else None

    def told(self, key: ReplicaKey, backend: Backend | None) -> Mapping[str, Foreign] | None:
        """What a scheduler was told about the gangs of a replica; None if that cannot be seen."""
        if backend is None or backend.keeps is None:
            return {}
        cache = self._caches.told.get(backend.keeps)
        if cache is None or not cache.settled.is_set():
            return None
        return {found.metadata.name: found for found in cache.by_index(BY_REPLICA, key)}
