"""Which scheduler a set's pods ask for, and what that scheduler was told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

import msgspec

from grove.api.config import Scheduler
from grove.api.gangs import PodGang
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.operator.caches import BY_REPLICA, Caches, Definition
from grove.operator.keys import ReplicaKey
from grove.plan.allegiance import scheduler_of
from grove.schedulers.backend import Backend, Foreign, Particular
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
        self._judged: dict[str, tuple[str, str]] = {}
        """By backend, the version of the definition that it was asked about, and what it said."""

    def of(
        self, workload: PodCliqueSet, index: int, gangs: Mapping[str, PodGang], pods: Iterable[Pod]
    ) -> Backend | None:
        """The backend of a replica; None: its scheduler is told nothing."""
        in_use = self._in_use
        return in_use.of(scheduler_of(workload, index, gangs, pods, in_use.by_name)) if in_use else None

    def told(self, key: ReplicaKey, backend: Backend | None) -> Mapping[str, Foreign] | None:
        """What a scheduler was told about the gangs of a replica; None if that cannot be seen."""
        if backend is None or backend.keeps is None:
            return {}
        cache = self._caches.told.get(backend.keeps)
        if cache is None or not cache.settled.is_set():
            return None
        return {found.metadata.name: found for found in cache.by_index(BY_REPLICA, key)}

    def lacking(self, backend: Backend | None) -> str:
        """Why what is installed of a scheduler will not do; empty if it will, or if nobody has looked."""
        kind = backend.keeps if backend is not None else None
        cache = self._caches.definitions.get(kind) if kind is not None else None
        if cache is None or kind is None or not cache.synced.is_set() or not isinstance(backend, Particular):
            return ""
        found = cache.get("", kind.crd_name)
        version = found.metadata.resource_version if found is not None else ""
        known = self._judged.get(backend.name)
        if known is None or known[0] != version:
            known = self._judged[backend.name] = (version, _asked(backend, found))
        return known[1]


def _asked(backend: Particular, found: Definition | None) -> str:
    try:
        return backend.lacks({"spec": msgspec.json.decode(found.spec)} if found is not None else None)
    except Exception as problem:  # of somebody else
        return f"its definition could not be judged: {type(problem).__name__}: {problem}"
